"""Percentiles of samples that are known as histograms: counts are added, percentiles are never averaged.

Definitions: docs/figures.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ENOUGH_BEYOND = 10
"""A percentile is shown when at least this many samples lie beyond it: p99 needs 1,000 samples."""

RESOLUTION_RATIO = 0.05
"""How wide the histograms may leave a percentile open; one that is more open is left out."""

MARKS = (10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999)
"""Where a curve has its points, up to what its samples support."""

_ROUNDING = 1e-9


@dataclass(frozen=True)
class CountedValues:
    """A histogram: for each value how many samples are at or below it; both rise.

    `exact`: each sample has one of the values; else it lies anywhere above the value before.
    """

    values_ms: Sequence[float]
    counts: Sequence[int]
    exact: bool = False


@dataclass(frozen=True)
class PercentilePoint:
    percentile: float
    value_ms: float


@dataclass(frozen=True)
class PercentileCurve:
    """Ascending points; `samples` are all behind them. `too_coarse`: some marks were left open by the histograms."""

    points: tuple[PercentilePoint, ...]
    samples: int
    too_coarse: bool


def is_supported(percentile: float, samples: int) -> bool:
    """Whether so many samples say anything about this percentile (0 to 100)."""
    return samples * (100 - percentile) / 100 >= ENOUGH_BEYOND - _ROUNDING


def curve_of(histograms: Sequence[CountedValues], marks: Sequence[float] = MARKS) -> PercentileCurve:
    """The percentiles (nearest rank, never too low) of all samples of the histograms together.

    `marks` are the percentiles wanted, 0 to 100; those that too few samples support are left out. Where
    a histogram leaves open what its samples are between two values, a percentile has a lower and an upper bound.
    """
    known = [one for one in histograms if len(one.counts)]
    samples = sum(one.counts[-1] for one in known)
    if not samples:
        return PercentileCurve((), 0, False)
    values = np.unique(np.concatenate([[0.0], *(np.asarray(one.values_ms, dtype=float) for one in known)]))
    at_least = sum(_at_or_below(one, values) for one in known)
    at_most = sum(_at_or_just_above(one, values) for one in known)
    points, too_coarse = [], False
    for mark in marks:
        if not is_supported(mark, samples):
            continue
        rank = max(1, math.ceil(round(mark / 100 * samples, 6)))
        above = float(values[np.searchsorted(at_least, rank)])
        below = float(values[np.searchsorted(at_most, rank)])
        if above - below <= RESOLUTION_RATIO * above:
            points.append(PercentilePoint(mark, above))
        else:
            too_coarse = True
    return PercentileCurve(tuple(points), samples, too_coarse)


def _at_or_below(one: CountedValues, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each value the samples that surely are at or below it."""
    before = np.concatenate([[0], np.asarray(one.counts, dtype=np.int64)])
    found: NDArray[np.int64] = before[np.searchsorted(np.asarray(one.values_ms), values, side="right")]
    return found


def _at_or_just_above(one: CountedValues, values: NDArray[np.float64]) -> NDArray[np.int64]:
    """For each value the samples that may be at it, below, or above it by next to nothing."""
    if one.exact:
        return _at_or_below(one, values)
    counts = np.asarray(one.counts, dtype=np.int64)
    above = np.searchsorted(np.asarray(one.values_ms), values, side="right")
    found: NDArray[np.int64] = counts[np.minimum(above, len(counts) - 1)]
    return found
