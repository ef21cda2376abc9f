"""The read side of schedules: names, next times, the last result; pages and API alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch
from django.db.models.functions import Now

from experiments.asking.schedules.clock import next_times
from experiments.judging.gate.decision import experiment_gate
from experiments.models import Experiment, Occasion, Run, Schedule, Team
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.errors import NotFound

NEXT_SHOWN = 3
OCCASIONS_SHOWN = 50


@dataclass(frozen=True)
class Result:
    """What became of a launch: a word for a badge (of `kind`), for an experiment that is over its gate as well."""

    kind: str
    value: str
    gate: str = ""


def with_names(found: TeamOwnedQuerySet) -> TeamOwnedQuerySet:
    """Schedules with what lists and pages show; `newest` is a list of the last occasion, `now` the database's time."""
    last = Occasion.objects.select_related("experiment", "run").order_by("schedule", "-id").distinct("schedule")
    shown = found.select_related("team", "crontab", "runs_as", "experiment", "run").annotate(now=Now())
    named: TeamOwnedQuerySet = shown.prefetch_related(Prefetch("occasions", last, to_attr="newest"))
    return named


def find_schedule(team: Team, schedule_id: int) -> Schedule:
    found: Schedule | None = with_names(Schedule.objects.for_team(team)).filter(pk=schedule_id).first()
    if found is None:
        raise NotFound(f"There is no schedule {schedule_id}.")
    return found


def occasions_of(schedule: Schedule) -> list[Occasion]:
    """The newest ones first."""
    return list(schedule.occasions.select_related("experiment", "run")[:OCCASIONS_SHOWN])


def times_of(schedule: Schedule) -> list[datetime]:
    """The next times in UTC; none while it is paused."""
    if schedule.due_at is None:
        return []
    return next_times(schedule.crontab, schedule.now, NEXT_SHOWN)  # type: ignore[attr-defined]  # of with_names


def result_of(occasion: Occasion) -> Result | None:
    """None when nothing was launched, or it is deleted."""
    if occasion.experiment is not None:
        over = occasion.experiment.state == Experiment.State.FINISHED
        gate = experiment_gate(occasion.experiment).outcome if over else ""
        return Result("experiment", occasion.experiment.state, gate)
    if occasion.run is not None:
        over = occasion.run.state == Run.State.FINISHED
        return Result("outcome", occasion.run.outcome) if over else Result("state", occasion.run.state)
    return None
