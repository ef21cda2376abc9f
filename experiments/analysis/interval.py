"""The mean of a few repetitions and how sure it is, for drawing: Student's t interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.distributions import student_quantile
from experiments.analysis.limits import MIN_FOR_INTERVAL


@dataclass(frozen=True)
class Mean:
    """`ci95` is Student's 95 % interval of the mean; None below three repetitions. `cov_ratio` is the spread.

    Of values of which none is below 0 the interval ends at 0, as a latency does.
    """

    value: float
    ci95: tuple[float, float] | None
    cov_ratio: float | None
    n: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean of the values, one for each repetition, in their unit; None when there are none."""
    n = len(values)
    if n == 0:
        return None
    mean = float(np.mean(values))
    if n < MIN_FOR_INTERVAL:
        return Mean(mean, None, None, n)
    stdev = float(np.std(values, ddof=1))
    half = student_quantile(n - 1, 0.975) * stdev / math.sqrt(n)
    low = mean - half
    if min(values) >= 0:
        low = max(0.0, low)  # a latency or a rate below 0 is none
    return Mean(mean, (low, mean + half), stdev / abs(mean) if mean else None, n)
