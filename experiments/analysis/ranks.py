"""Hodges-Lehmann shifts with exact rank intervals: the second opinion that an outlier cannot bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Shift:
    """A shift between two samples; `interval` is None when the samples are too small for 95 %.

    `confidence_ratio` is what the interval really covers: rank intervals move in steps, so it is at least 0.95.
    """

    estimate: float
    interval: tuple[float, float] | None
    confidence_ratio: float | None


@lru_cache(maxsize=64)
def rank_sum_null(n_a: int, n_b: int) -> tuple[float, ...]:
    """Probability of each Mann-Whitney U = 0 .. n_a * n_b when both samples come from one population."""
    # The counts are the coefficients of a Gaussian binomial; whole numbers keep them exact at any size.
    counts = [1] + [0] * (n_a * n_b)
    for i in range(1, n_a + 1):
        for u in range(n_a * n_b, n_b + i - 1, -1):
            counts[u] -= counts[u - n_b - i]
        for u in range(i, n_a * n_b + 1):
            counts[u] += counts[u - i]
    total = math.comb(n_a + n_b, n_a)
    return tuple(c / total for c in counts)


@lru_cache(maxsize=64)
def signed_rank_null(n: int) -> tuple[float, ...]:
    """Probability of each Wilcoxon signed-rank sum = 0 .. n(n+1)/2 when the differences are symmetric about 0."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for s in range(len(counts) - 1, rank - 1, -1):
            counts[s] += counts[s - rank]
    return tuple(c / 2**n for c in counts)


def shift_of_two_samples(a: Sequence[float], b: Sequence[float], *, confidence_ratio: float = 0.95) -> Shift:
    """Median of all differences b - a, with the interval that the exact Mann-Whitney test does not reject.

    With ties the interval is a little wider than asked, never narrower.
    """
    differences = np.subtract.outer(np.asarray(b, dtype=float), np.asarray(a, dtype=float)).ravel()
    return _shift(differences, rank_sum_null(len(a), len(b)), confidence_ratio)


def shift_of_pairs(differences: Sequence[float], *, confidence_ratio: float = 0.95) -> Shift:
    """Median of all pairwise averages, with the interval that the exact Wilcoxon signed-rank test does not reject."""
    d = np.asarray(differences, dtype=float)
    rows, columns = np.triu_indices(len(d))
    return _shift((d[rows] + d[columns]) / 2, signed_rank_null(len(d)), confidence_ratio)


def _shift(points: NDArray[np.float64], null: tuple[float, ...], confidence_ratio: float) -> Shift:
    """The median of `points` and the two of them between which the shift lies by the null distribution."""
    ordered = np.sort(points)
    tail, cut = 0.0, 0
    while tail + null[cut] <= (1 - confidence_ratio) / 2:
        tail += null[cut]
        cut += 1
    estimate = float(np.median(ordered))
    if cut == 0:
        return Shift(estimate, None, None)
    return Shift(estimate, (float(ordered[cut - 1]), float(ordered[-cut])), 1 - 2 * tail)
