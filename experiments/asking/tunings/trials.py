"""A tuning search as the arithmetic sees it: settings and trials, made of nothing but what is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from experiments.analysis.tuning.space import Space
from experiments.analysis.tuning.trials import FEWEST_RUNS, Limit, Purpose, Settings, Status, Trial
from experiments.asking.tunings.space import SpaceDocument, space_of
from experiments.models import Host, Tuning, TuningTrial
from experiments.registry.documents.contents import content_of

LEAST_RATIO = 1e-6
"""Of a limit: a figure of 0, such as no errors, has no logarithm."""


def space_to_search(tuning: Tuning) -> Space:
    return space_of(SpaceDocument.model_validate(tuning.space), content_of(tuning.recipe))


def settings_of(tuning: Tuning, over: Sequence[TuningTrial]) -> Settings:
    """The settings, with a budget that the hours that are left allow, and the hosts that are in service now."""
    further = list(tuning.further_suts.values_list("position", "confirms", "host__state"))
    searching = [tuning.sut.state, *(state for _, confirms, state in further if not confirms)]
    return Settings(
        space=space_to_search(tuning),
        default=tuning.default,
        higher_is_better=tuning.higher_is_better,
        budget_runs=budget_runs(tuning, over),
        hosts=len(searching),
        confirm_host=next((position for position, confirms, _ in further if confirms), None),
        away=frozenset(place for place, state in enumerate(searching) if state != Host.State.READY),
        limits=tuple(Limit(one["metric"], most) for one, most in bounds_of(tuning)),
        margin_ratio=tuning.margin_ratio,
        seed=tuning.seed,
        forgiven=len(searched([one for one in over if one.position < tuning.taken_up_at])),
        looks=tuning.looks,
        looked_at=len(searched([one for one in over if one.position < tuning.looked_at])),
    )


def bounds_of(tuning: Tuning) -> list[tuple[Mapping[str, Any], float]]:
    """The limits in the order of `bounded` of a trial, each with the largest value that keeps it there.

    Of a limit from below both are one over the value. One of 0 has none: a run that breaks it counts as a crash.
    """
    return [
        (one, one["at_most"] if one["at_most"] else 1 / one["at_least"]) for one in tuning.limits if one["at_most"] != 0
    ]


@dataclass(frozen=True)
class Limited:
    """A limited metric of one trial in its own unit, and whether its limit held."""

    metric: str
    value: float
    held: bool


def limited_of(tuning: Tuning, trial: TuningTrial) -> list[Limited]:
    """Each limited metric of a trial that was measured; without those whose limit is 0."""
    return [
        Limited(limit["metric"], value if limit["at_least"] is None else 1 / value, value <= most)
        for (limit, most), value in zip(bounds_of(tuning), trial.bounded, strict=False)  # none without a figure
    ]


def budget_runs(tuning: Tuning, over: Sequence[TuningTrial]) -> int:
    """The runs of the search, fewer when the hours will be used up before; never below what every search needs."""
    within = runs_in_hours(tuning, over)
    return max(tuning.budget_runs if within is None else min(tuning.budget_runs, within), FEWEST_RUNS)


def runs_in_hours(tuning: Tuning, over: Sequence[TuningTrial]) -> int | None:
    """So many runs of search and confirmation the hours allow, those so far among them; None without such a limit."""
    run_s = typical_s(over)
    if tuning.budget_hours is None or run_s is None:
        return None
    left_s = max(tuning.budget_hours * 3600 - used_s(over), 0.0)
    return count_searched(over) + math.floor(left_s / run_s)


def typical_s(over: Sequence[TuningTrial]) -> float | None:
    """What a further run of search or confirmation will take: the median of those so far, None without any."""
    took_s = [one.duration_s for one in over if one.purpose != TuningTrial.Purpose.REVERT]
    return max(median(took_s), 1e-3) if took_s else None


def used_s(over: Sequence[TuningTrial]) -> float:
    return math.fsum(one.duration_s for one in over)


def hours_are_used_up(tuning: Tuning, over: Sequence[TuningTrial]) -> bool:
    return tuning.budget_hours is not None and used_s(over) >= tuning.budget_hours * 3600


def as_trial(one: TuningTrial) -> Trial:
    return Trial(
        config=one.config,
        host=one.host,
        start_hours=one.start_hours,
        status=cast(Status, one.result),
        purpose=cast(Purpose, one.purpose),
        figure=one.figure,
        bounded=tuple(one.bounded),
        block=one.block,
    )


def trials_over(tuning: Tuning) -> list[TuningTrial]:
    """The trials that have a result, in order."""
    return list(tuning.trials.exclude(result=TuningTrial.Result.NONE))


def count_searched(over: Sequence[TuningTrial]) -> int:
    """How many count against the runs of the budget."""
    return sum(one.purpose != TuningTrial.Purpose.REVERT for one in over)


def searched(over: Sequence[TuningTrial]) -> list[Trial]:
    """Those of search and confirmation."""
    return [as_trial(one) for one in over if one.purpose != TuningTrial.Purpose.REVERT]


def reverted(over: Sequence[TuningTrial]) -> list[Trial]:
    """Those that look for the smallest recipe."""
    return [as_trial(one) for one in over if one.purpose == TuningTrial.Purpose.REVERT]
