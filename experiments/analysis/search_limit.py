"""What trials that passed or failed say of the rate at which a server stops to hold: where it lies, and how surely.

A trial passes below the limit and fails above it, the more surely the farther away. A hiccup may make any trial fail.
For every limit and every noise on a grid that is a likelihood (a psychometric function with a lapse rate, Kontsevich
and Tyler 1999); together with how likely each noise is beforehand, their product gives the interval.
How well it holds: bench/simulations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CREDIBLE = 0.94
"""Of the limit's distribution inside the interval. It is chosen so that simulated searches keep COVERAGE."""
COVERAGE = 0.90
"""At least this share of intervals holds the limit, when the width is at least twice the noise."""
HICCUP_RATIO = 0.07
LUCK_RATIO = 0.002
"""How often a trial fails far below the limit, and passes far above it."""
_NOISE_WIDTHS = np.array([0.1, 0.25, 0.5, 0.75, 1.0])
_NOISE_WEIGHTS = np.array([2.0, 2.0, 2.0, 1.0, 1.0])
"""What the limit may differ by from trial to trial, in widths, and how likely that is beforehand."""
_LOGISTIC = math.sqrt(3) / math.pi
_STEPS_PER_WIDTH = 10
_AROUND = 8.0
"""The limit may lie so many times above the largest rate that passed, and below the smallest that failed."""


@dataclass(frozen=True)
class Limit:
    """Rates in requests/s: the interval in which the limit lies, its middle, and one rate on each side of that."""

    low_rps: float
    lower_third_rps: float
    middle_rps: float
    upper_third_rps: float
    high_rps: float

    @property
    def width_ratio(self) -> float:
        return (self.high_rps - self.low_rps) / self.high_rps


def limit_of(
    rates_rps: Sequence[float],
    passed: Sequence[bool],
    *,
    around: tuple[float, float],
    width_ratio: float,
) -> Limit:
    """Where the limit lies after these trials. `around`: two rates in requests/s that it was looked for between.

    ValueError: there is not one result for each rate.
    """
    # One grid for every search of this width, whatever it started with: the same trials give the same answer.
    step = -math.log1p(-width_ratio) / _STEPS_PER_WIDTH
    lowest = min([around[0], *(rate for rate, ok in zip(rates_rps, passed, strict=True) if not ok)])
    highest = max([around[1], *(rate for rate, ok in zip(rates_rps, passed, strict=True) if ok)])
    first, last = (math.floor(math.log(rate) / step) for rate in (lowest / _AROUND, highest * _AROUND))
    limits = _grid(first, last, step)
    likely = np.repeat(np.log(_NOISE_WEIGHTS)[:, None], len(limits), axis=1)
    for rate, ok in zip(rates_rps, passed, strict=True):
        likely += _likely_after(float(rate), bool(ok), first, last, width_ratio)
    weights = np.exp(likely - likely.max())
    below = np.cumsum(weights.sum(axis=0))
    low, *inside, high = (
        _quantile(limits, below, share) for share in ((1 - CREDIBLE) / 2, 0.3, 0.5, 0.7, (1 + CREDIBLE) / 2)
    )
    # A point of the grid stands for what lies within half a step of it.
    ends = math.exp(low - step / 2), math.exp(high + step / 2)
    return Limit(ends[0], math.exp(inside[0]), math.exp(inside[1]), math.exp(inside[2]), ends[1])


@functools.lru_cache(maxsize=256)
def _likely_after(rate_rps: float, ok: bool, first: int, last: int, width_ratio: float) -> NDArray[np.float64]:
    """The log of how likely each limit and noise make one trial: the next look at a search asks for the same again."""
    limits = _grid(first, last, -math.log1p(-width_ratio) / _STEPS_PER_WIDTH)
    scales = (_NOISE_WIDTHS * width_ratio * _LOGISTIC)[:, None]
    holds = 1 / (1 + np.exp(-np.clip((limits - math.log(rate_rps)) / scales, -40.0, 40.0)))
    passes = LUCK_RATIO + (1 - LUCK_RATIO - HICCUP_RATIO) * holds
    logs: NDArray[np.float64] = np.log(passes if ok else 1 - passes)
    logs.flags.writeable = False
    return logs


def _grid(first: int, last: int, step: float) -> NDArray[np.float64]:
    return np.arange(first, last + 1, dtype=np.float64) * step


def _quantile(limits: NDArray[np.float64], below: NDArray[np.float64], share: float) -> float:
    return float(limits[min(int(np.searchsorted(below, share * below[-1])), len(limits) - 1)])
