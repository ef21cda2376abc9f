"""When waiting runs can be expected to start: hosts are taken in the order of the queue, each run for its estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from agents.plan import CONTROL_S
from experiments.dispatch import Waiting, queue_of
from experiments.models import Host, Run, Team
from frontend.preflight import load_s


@dataclass(frozen=True)
class Expected:
    """A run with its estimate. `starts_at` is None when a host must be put right first."""

    run: Run
    reason: str
    takes_s: float
    starts_at: datetime | None
    ends_at: datetime | None


@dataclass(frozen=True)
class Schedule:
    """What runs now, and what waits in the order of the queue."""

    running: list[Expected]
    waiting: list[Expected]


def schedule_of(team: Team) -> Schedule:
    """The team's queue with estimates. A fixed number of queries."""
    now = timezone.now()
    live = list(Run.objects.for_team(team).with_names().filter(state__in=Run.ACTIVE).order_by("number"))
    queued = queue_of(team)
    takes = _durations([*live, *(waiting.run for waiting in queued)])
    free_at: dict[int, datetime] = {}
    running = []
    for run in live:
        ends_at = max((run.started_at or now) + timedelta(seconds=takes[run.pk]), now)
        running.append(Expected(run, "", takes[run.pk], run.started_at, ends_at))
        free_at |= dict.fromkeys(_hosts(run), ends_at)
    return Schedule(running, _waiting(queued, takes, free_at, now))


def _waiting(
    queued: Sequence[Waiting], takes: Mapping[int, float], free_at: dict[int, datetime], now: datetime
) -> list[Expected]:
    found = []
    for entry in queued:
        run = entry.run
        if any(host is None or host.state != Host.State.READY for host in (run.sut, run.driver)):
            found.append(Expected(run, entry.reason, takes[run.pk], None, None))
            continue
        starts_at = max([now, *(free_at[pk] for pk in _hosts(run) if pk in free_at)])
        ends_at = starts_at + timedelta(seconds=takes[run.pk])
        free_at |= dict.fromkeys(_hosts(run), ends_at)
        found.append(Expected(run, entry.reason or "It is next.", takes[run.pk], starts_at, ends_at))
    return found


def _durations(runs: Sequence[Run]) -> dict[int, float]:
    phases = Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("pk", "spec__workload__phases")
    return {pk: load_s(found or ()) + CONTROL_S for pk, found in phases}


def _hosts(run: Run) -> list[int]:
    return [pk for pk in (run.sut_id, run.driver_id) if pk is not None]
