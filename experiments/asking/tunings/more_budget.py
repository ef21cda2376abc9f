"""What more budget a tuning search needs: further runs, and hours where those that are left are not enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.tuning.search import more_to_search
from experiments.asking.tunings.trials import budget_runs, count_searched, runs_in_hours, settings_of, typical_s, used_s
from experiments.models import Tuning, TuningTrial

SPARE_RATIO = 1.1
"""Some of the further runs are invalid and made again, or take longer."""


@dataclass(frozen=True)
class More:
    """What has to be added to a budget; `hours` is 0 where the hours are enough, or have no limit."""

    runs: int
    hours: float

    def __bool__(self) -> bool:
        return bool(self.runs or self.hours)

    def __str__(self) -> str:
        """As people are told: "14 more runs and 1.5 more hours"."""
        parts = ((self.runs, "run"), (self.hours, "hour"))
        return " and ".join(f"{count:g} more {word}{'' if count == 1 else 's'}" for count, word in parts if count)


def more_for(tuning: Tuning, over: Sequence[TuningTrial], further: int) -> More:
    """What `further` runs need. Runs that the budget still has are among them where the hours keep them from it."""
    runs = further
    if hours_bind(tuning, over):
        runs = max(count_searched(over) + further - tuning.budget_runs, 0)
    return More(runs, _hours_for(tuning, over, further))


def more_to_look_for_others(tuning: Tuning, over: Sequence[TuningTrial]) -> More:
    """The least with which a search that ended looks for other configurations, too."""
    total = _runs_that_search_on(tuning, over)
    return More(max(total - tuning.budget_runs, 0), _hours_for(tuning, over, total - count_searched(over)))


def runs_to_look_for_others(tuning: Tuning, over: Sequence[TuningTrial]) -> int:
    """How many runs it has to make for that, those that its budget still has among them."""
    return _runs_that_search_on(tuning, over) - count_searched(over)


def hours_bind(tuning: Tuning, over: Sequence[TuningTrial]) -> bool:
    """Whether the hours end the search before its runs do."""
    within = runs_in_hours(tuning, over)
    return within is not None and within < tuning.budget_runs


def adds_runs(tuning: Tuning, over: Sequence[TuningTrial], before: int) -> bool:
    """Whether more runs can be made than the `before` that the budget allowed, so many that there is another pair."""
    allowed = budget_runs(tuning, over)
    return allowed > before and allowed >= count_searched(over) + 2


def _runs_that_search_on(tuning: Tuning, over: Sequence[TuningTrial]) -> int:
    settings = settings_of(tuning, over)
    return settings.budget_runs + more_to_search(settings, count_searched(over))


def _hours_for(tuning: Tuning, over: Sequence[TuningTrial], further: int) -> float:
    """Hours beyond those of the budget, rounded up to hundredths."""
    run_s = typical_s(over)
    if tuning.budget_hours is None or run_s is None:
        return 0.0
    needed_s = used_s(over) + SPARE_RATIO * further * run_s
    return max(math.ceil((needed_s - tuning.budget_hours * 3600) / 36) / 100, 0.0)
