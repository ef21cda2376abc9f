"""The queue as pages show it: each run beside what is expected of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.models import Run, Team
from experiments.running.queue.plan import Expected
from experiments.running.queue.waiting import schedule_and_count

MAX_SHOWN = 200
"""Waiting runs on the page and in the API; how many more there are is said, too."""


@dataclass(frozen=True)
class Line:
    """A run with its estimate."""

    run: Run
    expected: Expected


@dataclass(frozen=True)
class Queue:
    """What runs now, and what waits in the order in which it will start; `more` wait behind those shown, `before` in
    front of them, and `more_running` run beside them."""

    running: list[Line]
    waiting: list[Line]
    more: int
    more_running: int
    before: int = 0

    @property
    def waiting_count(self) -> int:
        return self.before + len(self.waiting) + self.more


def queue_of(team: Team, most_running: int | None = None, *, skip: int = 0, most: int | None = None) -> Queue:
    """The team's queue with estimates: the first `most_running` of those that run (None = all), and `most` of those
    that wait (None = `MAX_SHOWN`), behind the first `skip`. A fixed number of queries.
    """
    schedule, waiting_count = schedule_and_count(team, skip + (MAX_SHOWN if most is None else most))
    active, shown = schedule.active[:most_running], schedule.waiting[skip:]
    wanted = [expected.run_id for expected in (*active, *shown)]
    runs = {run.pk: run for run in Run.objects.for_team(team).with_names().filter(pk__in=wanted)}

    def lines(found: Iterable[Expected]) -> list[Line]:
        return [Line(runs[one.run_id], one) for one in found if one.run_id in runs]

    before, beside = len(schedule.waiting) - len(shown), len(schedule.active) - len(active)
    return Queue(lines(active), lines(shown), waiting_count - before - len(shown), beside, before)
