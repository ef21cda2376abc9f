"""What profiling costs: the same runs with and without a profiler, pair by pair in blocks (docs/profiles.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.limits import MIN_FOR_INTERVAL
from experiments.analysis.verdict import Interval, change_of_means

MOST_COST_PCT = 2.0
"""A profile of a server that profiling makes slower by more than this is a profile of something else."""


@dataclass(frozen=True)
class ProfilingCost:
    """How the figure `metric` of profiled runs differs from that of their twins without a profiler, in per cent.

    `ci95_pct` is None below three pairs. `is_distorted`: it is worse by more than 2 %; None where no pair is known.
    """

    metric: str
    n: int
    change_pct: float | None
    ci95_pct: Interval | None
    is_distorted: bool | None

    @property
    def is_certain(self) -> bool:
        """Whether the whole interval is on one side of 2 %, be it for the worse or for the better."""
        if self.ci95_pct is None:
            return False
        low, high = sorted(abs(end) for end in self.ci95_pct)
        return high <= MOST_COST_PCT or (self.ci95_pct[0] * self.ci95_pct[1] > 0 and low > MOST_COST_PCT)


def cost_of_profiling(
    metric: str, plain: Sequence[float], profiled: Sequence[float], *, higher_is_better: bool
) -> ProfilingCost:
    """The change from `plain` to `profiled`, figures above 0 of one metric, the same place in both being one pair.

    The change is of the logarithms, as in verdicts, with Student's t of the pairs. ValueError: unequal lengths, or a
    figure that is not above 0.
    """
    if len(plain) != len(profiled):
        raise ValueError("each profiled run needs its twin")
    if any(value <= 0 for value in (*plain, *profiled)):
        raise ValueError("figures must be above 0")
    if not plain:
        return ProfilingCost(metric, 0, None, None, None)
    before, after = np.log(plain), np.log(profiled)
    change_pct = _pct(float((after - before).mean()))
    interval: Interval | None = None
    if len(plain) >= MIN_FOR_INTERVAL:
        low, high = change_of_means(before, after, "blocked").interval(0.95)
        interval = (_pct(low), _pct(high))
    worse_pct = -change_pct if higher_is_better else change_pct
    return ProfilingCost(metric, len(plain), change_pct, interval, worse_pct > MOST_COST_PCT)


def _pct(log_ratio: float) -> float:
    return 100 * math.expm1(log_ratio)
