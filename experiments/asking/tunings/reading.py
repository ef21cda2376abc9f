"""The read side of tuning searches: trials, cost, what is left; pages and API alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean, median

from experiments.analysis.tuning.effects import Effect, effects_of
from experiments.analysis.tuning.smallest import runs_needed
from experiments.asking.tunings.more_budget import SPARE_RATIO
from experiments.asking.tunings.trials import (
    Limited,
    budget_runs,
    limited_of,
    searched,
    settings_of,
    space_to_search,
    trials_over,
    used_s,
)
from experiments.asking.tunings.wording import config_text, limit_text
from experiments.models import Run, Tuning, TuningTrial
from experiments.running.queue.estimates import estimates_for


@dataclass(frozen=True)
class Shown:
    """A trial with what people read of it. `against_pct`: its figure against the mean of the default's in the search;
    of a trial that was selected that is optimistic, so it is no claim. `is_left_out`: its region was, later on.
    `sut`: the server, where a search has several. `limited`: each limited metric."""

    trial: TuningTrial
    config: str
    is_default: bool
    against_pct: float | None
    is_left_out: bool = False
    sut: str = ""
    limited: tuple[Limited, ...] = ()

    @property
    def result(self) -> str:
        """The trial's result; "over" where it was measured and a limit did not hold, "cancelled" where its run was."""
        if _was_cancelled(self.trial):
            return "cancelled"
        return self.trial.result if all(one.held for one in self.limited) else "over"


@dataclass(frozen=True)
class Cost:
    """What was used and what is left at most, invalid runs that are made again beside. `left` is None before anybody
    knows how long a run takes. `left_reduction_runs` of `left_runs` are those of the smallest recipe."""

    runs: int
    used: timedelta
    left_runs: int
    left_reduction_runs: int
    left: timedelta | None
    crashed: int
    refused: int
    invalid: int


def _was_cancelled(trial: TuningTrial) -> bool:
    return trial.run is not None and trial.run.outcome == Run.Outcome.CANCELLED


def trials_of(tuning: Tuning) -> list[TuningTrial]:
    """The trials in order, planned ones too, with their runs, without wide columns."""
    return list(tuning.trials.select_related("run").defer("run__spec"))


def shown(tuning: Tuning, trials: list[TuningTrial]) -> list[Shown]:
    """Those that were launched or refused, in order."""
    controls = [one.figure for one in trials if one.config == tuning.default and one.figure is not None]
    base = fmean(controls) if controls else None
    space = space_to_search(tuning)
    names = [host.name for host in tuning.suts]
    return [
        Shown(
            one,
            config_text(one.config, tuning.default),
            one.config == tuning.default,
            100 * (one.figure / base - 1) if base and one.figure is not None else None,
            space.is_forbidden(one.config),
            names[one.host] if len(names) > 1 else "",
            tuple(limited_of(tuning, one)),
        )
        for one in trials
        if one.run_id is not None or one.result
    ]


def cost_of(tuning: Tuning, trials: list[TuningTrial]) -> Cost:
    over = [one for one in trials if one.result]
    counted = [one for one in over if one.purpose != TuningTrial.Purpose.REVERT]
    used = used_s(over)
    is_live = tuning.state == Tuning.State.RUNNING
    left_search = max(budget_runs(tuning, over) - len(counted), 0) if is_live and not tuning.outcome else 0
    left_reduction = 0
    if is_live and (tuning.outcome == Tuning.Outcome.BETTER or (tuning.reduces and not tuning.outcome)):
        left_reduction = max(reduction_runs(tuning) - (len(over) - len(counted)), 0)
    if over:
        run_s: float = median(one.duration_s for one in over)
    else:
        run_s = estimates_for({tuning.workload_id}, {tuning.sut_id}).takes_s(tuning.workload_id, tuning.sut_id)
    left_runs = left_search + left_reduction
    left_s = left_runs * run_s
    if tuning.budget_hours is not None:
        of_hours_s = max(tuning.budget_hours * 3600 - used, 0.0)
        left_runs = min(left_runs, math.ceil(of_hours_s / run_s)) if run_s else left_runs * (of_hours_s > 0)
        left_s = min(left_s, of_hours_s)
    return Cost(
        runs=len(over),
        used=timedelta(seconds=used),
        left_runs=left_runs,
        left_reduction_runs=max(left_runs - left_search, 0),
        left=timedelta(seconds=left_s) if run_s else None,
        crashed=sum(one.result == TuningTrial.Result.CRASHED for one in over),
        refused=sum(one.result == TuningTrial.Result.REFUSED for one in over),
        invalid=sum(one.result == TuningTrial.Result.INVALID and not _was_cancelled(one) for one in over),
    )


def reduction_runs(tuning: Tuning) -> int:
    """The runs that the smallest recipe takes at most: of the winner, or of whatever wins."""
    return runs_needed(settings_of(tuning, ()), tuning.winner)


def hours_with_reduction(tuning: Tuning) -> float | None:
    """The hours of its budget, enough for the runs of the smallest recipe; None when it has no limit of hours."""
    over = trials_over(tuning)
    measured = [one.duration_s for one in over if one.result == TuningTrial.Result.OK]
    if tuning.budget_hours is None or not measured:
        return tuning.budget_hours
    needed_s = used_s(over) + SPARE_RATIO * reduction_runs(tuning) * median(measured)
    return max(tuning.budget_hours, math.ceil(needed_s / 36) / 100)


def effects_in(tuning: Tuning) -> list[Effect]:
    """What the model believes of each parameter alone, the largest spread first; [] with too few trials."""
    over = trials_over(tuning)
    settings = settings_of(tuning, over)
    return effects_of(settings, searched(over))


def limits_text(tuning: Tuning) -> list[str]:
    """The limits as people write them: "latency_p99_ms ≤ 50"."""
    return [limit_text(one) for one in tuning.limits]
