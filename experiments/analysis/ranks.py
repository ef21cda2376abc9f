"""Hodges-Lehmann shifts with exact rank intervals: the second opinion that an outlier cannot bend.

Sources: Hodges and Lehmann 1963; Mann and Whitney 1947; Wilcoxon 1945.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


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
    """The probability of each Mann-Whitney U = 0 .. n_a * n_b when both samples come from one population."""
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
    """The probability of each Wilcoxon signed-rank sum = 0 .. n(n+1)/2 when the differences are symmetric about 0."""
    counts = [1] + [0] * (n * (n + 1) // 2)
    for rank in range(1, n + 1):
        for s in range(len(counts) - 1, rank - 1, -1):
            counts[s] += counts[s - rank]
    return tuple(c / 2**n for c in counts)


def p_of_two_samples(a: Samples, b: Samples) -> float:
    """The two-sided p-value of the Mann-Whitney test: exact, over all divisions of the pooled mid-ranks."""
    ranks = _doubled_ranks(np.concatenate([a, b]))
    return _two_sided(_sums_of_subsets(tuple(sorted(ranks.tolist())), len(b)), int(ranks[len(a) :].sum()))


def p_of_pairs(differences: Samples) -> float:
    """The two-sided p-value of the Wilcoxon signed-rank test, exact with ties, too; differences of 0 say nothing."""
    d = np.asarray(differences, dtype=float)
    d = d[d != 0]
    ranks = _doubled_ranks(np.abs(d))
    return _two_sided(_sums_of_signs(tuple(sorted(ranks.tolist()))), int(ranks[d > 0].sum()))


@lru_cache(maxsize=64)
def _sums_of_subsets(ranks: tuple[int, ...], size: int) -> NDArray[np.float64]:
    """How many subsets of this size have each sum; the order of the ranks does not matter."""
    counts = np.zeros((size + 1, sum(sorted(ranks)[-size:]) + 1 if size else 1))
    counts[0, 0] = 1
    for rank in ranks:
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank]
    of_size: NDArray[np.float64] = counts[size]
    return of_size


@lru_cache(maxsize=64)
def _sums_of_signs(ranks: tuple[int, ...]) -> NDArray[np.float64]:
    """How many choices of signs give each sum of the positive ranks."""
    counts = np.zeros(sum(ranks) + 1)
    counts[0] = 1
    for rank in ranks:
        counts[rank:] += counts[: len(counts) - rank].copy()
    return counts


def _doubled_ranks(values: Samples) -> NDArray[np.int64]:
    """Mid-ranks times two, so that they are whole numbers."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    doubled: NDArray[np.int64] = (2 * ends - counts + 1)[places]
    return doubled


def _two_sided(counts: NDArray[np.float64], seen: int) -> float:
    """Twice the smaller tail, at most 1."""
    total = counts.sum()
    tails = counts[: seen + 1].sum() / total, counts[seen:].sum() / total
    return float(min(1.0, 2 * min(tails)))


def shift_of_two_samples(a: Sequence[float], b: Sequence[float], *, confidence_ratio: float = 0.95) -> Shift:
    """Median of all differences b - a, with the interval that the exact Mann-Whitney test does not reject.

    With ties the interval is a little wider than asked, never narrower.
    """
    differences = np.subtract.outer(np.asarray(b, dtype=float), np.asarray(a, dtype=float)).ravel()
    return _shift(differences, rank_sum_null(len(a), len(b)), confidence_ratio)


def shift_of_pairs(differences: Sequence[float], *, confidence_ratio: float = 0.95) -> Shift:
    """Median of all averages of two differences, with the interval that Wilcoxon's exact test does not reject."""
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
