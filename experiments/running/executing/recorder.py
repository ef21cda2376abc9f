"""Events of a live run become rows: the only writer while a run is live, and every write is fenced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from agents.base.errors import FenceError, KeepError, ParseError
from agents.events import (
    AnyEvent,
    ConfigurationCaptured,
    FactsCollected,
    Failed,
    LoadStarted,
    PhaseStarted,
    from_json,
    to_json,
)
from agents.fingerprint import fingerprint
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.spec import RunSpec
from agents.working.showing import Showing
from agents.working.storable import storable
from experiments.models import ConfigSnapshot, Host, Run, RunEvent
from experiments.registry.database_clock import database_now
from experiments.registry.errors import RequestError
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.hosts.profiles import store_profile
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.file_store import folder_of, put
from experiments.registry.runs.run_profiles import store_run_profile
from experiments.registry.runs.snapshots import content_digest
from experiments.running.queue.leases import lease_end

STATES = {
    "connect": Run.State.PREPARING,
    "facts": Run.State.PREPARING,
    "snapshot": Run.State.PREPARING,
    "tune": Run.State.PREPARING,
    "start": Run.State.PREPARING,
    "warm_up": Run.State.WARMING_UP,
    "measure": Run.State.MEASURING,
    "collect": Run.State.COLLECTING,
    "stop": Run.State.RESTORING,
    "restore": Run.State.RESTORING,
    "verify": Run.State.RESTORING,
}


NOW = Now()


class EventsMissing(Exception):
    """There are events before these that are not stored."""

    def __init__(self, last_seq: int) -> None:
        super().__init__(f"stored are the events up to {last_seq}")
        self.last_seq = last_seq


@dataclass(frozen=True)
class Told:
    """An event that happened `age_s` before it is stored, as its teller says."""

    event: AnyEvent
    age_s: float = 0.0


class Recorder:
    """Writes the events of one run for the holder of its fence."""

    def __init__(self, run_id: int, fence: int) -> None:
        self.run_id = run_id
        self.fence = fence
        self._seq: int | None = None
        self._showing = Showing()

    def record(self) -> Record:
        """What the stored events add up to; samples and log lines leave no state, so they are not read."""
        rows = RunEvent.objects.filter(run_id=self.run_id).exclude(kind__in=("samples", "logged")).order_by("seq")
        return Record.fold(from_json(payload) for payload in rows.values_list("payload", flat=True).iterator())

    def store(self, event: AnyEvent) -> None:
        """Store one event, without secrets in what people read of it, and what it means for the run's row.

        FenceError when another worker holds the run now.
        """
        event = self._showing.fit(event)
        with transaction.atomic():
            if (seq := self._next_seq()) is None:
                return
            RunEvent.objects.bulk_create([self._row(seq, event)])
            self._apply(event)
        self._seq = seq

    def store_all(self, first: int, events: Sequence[Told]) -> int:
        """Store a batch of events that somebody else has numbered from `first`; returns the last number stored.

        Each has the time at which it happened, and none is before the one before it. Those that are stored already are
        passed over, so that a batch may come twice. FenceError as in `store`, EventsMissing when some before these were
        never told.
        """
        with transaction.atomic():
            run = Run.objects.select_for_update(of=("self",)).get(pk=self.run_id)
            if run.fence != self.fence:
                raise FenceError("Another worker holds this run now.")
            if first > run.last_seq + 1:
                raise EventsMissing(run.last_seq)
            told = events[run.last_seq + 1 - first :]
            new = list(zip((self._showing.fit(one.event) for one in told), _times(run, told), strict=True))
            rows = [self._row(seq, event, at) for seq, (event, at) in enumerate(new, run.last_seq + 1)]
            RunEvent.objects.bulk_create(rows)
            self._seq = run.last_seq + len(new)
            Run.objects.filter(pk=self.run_id).update(last_seq=self._seq)
            for event, at in new:
                self._apply(event, at)
        return self._seq

    def _apply(self, event: AnyEvent, at: datetime | Now = NOW) -> None:
        if changes := self._changes(event, at):
            # The way back of a finished run may be taken once more; the run stays finished.
            Run.objects.filter(pk=self.run_id).exclude(state=Run.State.FINISHED).update(**changes)

    def _row(self, seq: int, event: AnyEvent, at: datetime | Now = NOW) -> RunEvent:
        payload = storable(to_json(event))
        return RunEvent(run_id=self.run_id, seq=seq, kind=event.kind, payload=payload, fence=self.fence, at=at)

    def keep_file(self, name: str, content: bytes | Path, media_type: str) -> None:
        """Keep a file of the run; the same name again replaces it. FenceError when another worker holds the run now.

        What a path holds is read in pieces. KeepError when it is too large, or there is no place for it now.
        """
        folder = folder_of(Run.objects.values_list("team_id", flat=True).get(pk=self.run_id))
        try:  # before the transaction: 512 MB may take longer than a run's row may be locked
            if isinstance(content, bytes):
                there = put(folder, content, name=name, media_type=media_type)
            else:
                with content.open("rb") as source:
                    there = put(folder, source, name=name, media_type=media_type)
        except RequestError as error:
            raise KeepError(error.message) from error
        with transaction.atomic():
            run = Run.objects.select_for_update(of=("self",)).get(pk=self.run_id)
            if run.fence != self.fence:
                raise FenceError("Another worker holds this run now.")
            keep(run, name, there, media_type=media_type)

    def keep_profile(self, taken: TakenProfile, content: bytes) -> str:
        """Store a profile of the run; its name again replaces it. Returns the name of the file that keeps `content`.

        ParseError when it is none, or too large; FenceError when another worker holds the run now.
        """
        with transaction.atomic():
            run = Run.objects.select_for_update(of=("self",)).get(pk=self.run_id)
            if run.fence != self.fence:
                raise FenceError("Another worker holds this run now.")
            try:
                return store_run_profile(run, content, taken, replace=True).file
            except RequestError as error:
                raise ParseError(error.message) from error

    def beat(self) -> bool:
        """Hold the lease for another while; True when a person asked for the end. FenceError = the run is not ours."""
        held = Run.objects.filter(pk=self.run_id, fence=self.fence).update(lease_until=lease_end(), doubted_at=None)
        if not held:
            raise FenceError("Another worker holds this run now.")
        return Run.objects.filter(pk=self.run_id, cancel_requested_at__isnull=False).exists()

    def let_go(self) -> None:
        """Hand the run over: its lease ends now, so that the next worker adopts it at once."""
        Run.objects.filter(pk=self.run_id, fence=self.fence).update(lease_until=Now(), owner="")

    def _next_seq(self) -> int | None:
        """The next event's number; None when it is stored already: its commit was done, only the answer was lost."""
        if self._seq is None:
            self._seq = self._stored_seq()
        seq = self._seq + 1
        if Run.objects.filter(pk=self.run_id, fence=self.fence, last_seq=seq - 1).update(last_seq=seq):
            return seq
        if self._stored_seq() != seq:
            raise FenceError("Another writer has stored events of this run.")
        self._seq = seq
        return None

    def _stored_seq(self) -> int:
        mine = Run.objects.filter(pk=self.run_id, fence=self.fence)
        stored: int | None = mine.values_list("last_seq", flat=True).first()
        if stored is None:
            raise FenceError("Another worker holds this run now.")
        return stored

    def _changes(self, event: AnyEvent, at: datetime | Now = NOW) -> dict[str, Any]:
        match event:
            case PhaseStarted():
                return {"state": STATES[event.phase]}
            case LoadStarted(measured=True):
                return {"measured_at": at}
            case Failed():
                outcome = Run.Outcome.CANCELLED if event.cancelled else Run.Outcome.FAILED
                return {"outcome": outcome, "failure": event.message, "failure_hint": event.hint}
            case ConfigurationCaptured():
                return {"config": self._config(event)}
            case FactsCollected():
                return self._facts(event)
            case _:
                return {}

    def _config(self, event: ConfigurationCaptured) -> ConfigSnapshot:
        team_id = Run.objects.values_list("team_id", flat=True).get(pk=self.run_id)
        values = dict(event.values)
        config, _ = ConfigSnapshot.objects.get_or_create(
            team_id=team_id, digest=content_digest(values), defaults={"values": values}
        )
        return config

    def _facts(self, event: FactsCollected) -> dict[str, Any]:
        run = Run.objects.select_related("sut_profile").get(pk=self.run_id)
        host = Host.objects.filter(pk=hosts_by_role(run).get(event.role, 0)).first()
        profile = None
        if host is not None:
            profile = store_profile(host, event.digest, event.profile)
            Host.objects.filter(pk=host.pk).update(clock_ahead_s=event.clock_offset_s)
        if event.role == "sut":
            return {"sut_profile": profile}
        if event.role != "driver":
            return {}
        spec = RunSpec.model_validate(run.spec)
        digest, version = run.sut_profile.digest if run.sut_profile else "", event.tool_version
        members = self._member_digests(spec)
        series = fingerprint(spec, driver_version=version, profile_digest=digest, member_digests=members)
        return {"fingerprint": series}

    def _member_digests(self, spec: RunSpec) -> dict[str, str]:
        """Role -> digest of the facts of each further member's host: they come before those of the driver hosts."""
        if not spec.members:
            return {}
        told = RunEvent.objects.filter(run_id=self.run_id, kind="facts_collected").order_by("seq")
        return {one["role"]: one["digest"] for one in told.values_list("payload", flat=True)}


def _times(run: Run, told: Sequence[Told]) -> list[datetime]:
    """When each of these happened that follow the run's stored events, by the database's clock."""
    now = database_now()
    stored = RunEvent.objects.filter(run=run).order_by("-seq").values_list("at", flat=True).first()
    latest = min(stored or run.started_at or now, now)  # a clock that was set back has no say
    times = []
    for one in told:
        most_s = (now - latest).total_seconds()
        latest = now - timedelta(seconds=min(max(one.age_s, 0.0), most_s))
        times.append(latest)
    return times
