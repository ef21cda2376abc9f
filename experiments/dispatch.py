"""The queue: which run may start, on hosts leased all or none, and which one lost its worker.

PostgreSQL decides. All claims of an installation are made one after the other (an advisory lock: they are rare and
short), so that no two workers see the same hosts as free. A host stays leased until the restore is verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from experiments.models import Host, Run, Team
from experiments.models.runs import RunQuerySet

MAX_LOOKED_AT = 500
"""Queued runs that one claim looks at, oldest first."""

_CLAIM_LOCK = 0x42656E6368  # "Bench"


@dataclass(frozen=True)
class Waiting:
    """A queued run and why it does not run yet, in plain words ("" = it is next)."""

    run: Run
    reason: str


def claim_next(owner: str) -> Run | None:
    """Take the next run for this worker: first one whose worker is gone, else the oldest whose hosts are all free.

    The claim raises the fence (one number for the whole installation, always growing) and starts a lease.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        run = _orphan() or _startable()
        if run is None:
            return None
        # A cancel or a conclusion may have come between the look and the claim: only what is still so is claimed.
        same = Run.objects.filter(pk=run.pk, state=run.state, fence=run.fence)
        claimed = same.update(
            fence=_next_fence(),
            owner=owner,
            lease_until=Now() + timedelta(seconds=settings.BENCHHUB_LEASE_S),
            attempts=F("attempts") + 1,
            started_at=Coalesce(F("started_at"), Now()),
            state=Run.State.PREPARING if run.state == Run.State.QUEUED else run.state,
        )
        if not claimed:
            return None
        if run.state == Run.State.QUEUED:
            Host.objects.filter(pk__in=_hosts_of(run)).update(leased_by=run)
    whole: Run = Run.objects.get(pk=run.pk)
    return whole


def something_to_do() -> bool:
    """Whether a claim could succeed now: a cheap look, the claim itself decides."""
    with transaction.atomic():
        return _orphan() is not None or _startable() is not None


def queue_of(team: Team) -> list[Waiting]:
    """The team's queue in order, each run with the reason why it waits."""
    waiting = []
    taken: dict[int, Run] = {}
    for run in _queued().filter(team=team).with_names().select_related("sut__leased_by", "driver__leased_by"):
        waiting.append(Waiting(run, _reason(run, taken)))
        for host_id in _hosts_of(run) if _in_service(run) else ():
            taken.setdefault(host_id, run)
    return waiting


def _orphan() -> Run | None:
    lost: Run | None = Run.objects.filter(state__in=Run.ACTIVE, lease_until__lt=Now()).order_by("lease_until").first()
    return lost


def _startable() -> Run | None:
    """The oldest queued run whose hosts are free and wanted by no older one: a wide run is never overtaken for ever.

    A run that waits for a host out of service holds up nobody: only a person can end that.
    """
    wanted: set[int] = set()
    ready = _queued().filter(sut__state=Host.State.READY, driver__state=Host.State.READY)
    names = ("state", "fence", "sut_id", "driver_id", "sut__leased_by_id", "driver__leased_by_id")
    queued: list[Run] = list(ready.select_related("sut", "driver").only(*names)[:MAX_LOOKED_AT])
    for run in queued:
        hosts = _hosts_of(run)
        if not wanted & hosts and all(host.leased_by_id is None for host in (run.sut, run.driver) if host):
            return run
        wanted |= hosts
    return None


def _queued() -> RunQuerySet:
    queued: RunQuerySet = Run.objects.filter(state=Run.State.QUEUED).order_by("id")
    return queued


def _in_service(run: Run) -> bool:
    return all(host is not None and host.state == Host.State.READY for host in (run.sut, run.driver))


def _hosts_of(run: Run) -> set[int]:
    return {host_id for host_id in (run.sut_id, run.driver_id) if host_id is not None}


def _reason(run: Run, taken: dict[int, Run]) -> str:
    for host in (run.sut, run.driver):
        if host is None:
            return "A host of this run does not exist any more."
        if host.state != Host.State.READY:
            return f"{host.name} is {host.get_state_display()}{': ' + host.state_reason if host.state_reason else ''}."
        if host.leased_by is not None:
            return f"{host.name} is used by run #{host.leased_by.number}."
        if host.pk in taken:
            return f"Run #{taken[host.pk].number} is before it on {host.name}."
    return ""


def _next_fence() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('experiments_fence')")
        return int(cursor.fetchone()[0])
