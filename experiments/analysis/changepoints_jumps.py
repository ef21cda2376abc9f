"""How certain a cut is: Student's t-test between the levels on both sides, and the removal of the weakest cuts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.distributions import student_quantile, student_share

Floats = NDArray[np.float64]

SAME_RATIO = 1e-12
"""Means that are closer than this differ by the rounding of sums only."""


@dataclass(frozen=True)
class Jump:
    """A change of level: `index` is the first value of the new one, `p` the chance of such a difference by noise."""

    index: int
    p: float
    mean_before: float
    mean_after: float
    n_before: int
    n_after: int

    @property
    def change_ratio(self) -> float:
        """The change against the level before; infinite when that was 0."""
        if self.mean_before == 0:
            return inf if self.mean_after else 0.0
        change = self.mean_after / self.mean_before - 1
        return change if self.mean_before > 0 else -change  # up is up, below 0 too

    @property
    def magnitude_ratio(self) -> float:
        """The larger of the changes there and back; to or from 0 is 1, as in Apache Otava."""
        there = abs(self.mean_after / self.mean_before - 1) if self.mean_before else 0.0
        back = abs(self.mean_before / self.mean_after - 1) if self.mean_after else 0.0
        return max(there, back)


class Levels:
    """Mean and spread of any stretch of the values in a few operations, by running sums."""

    def __init__(self, values: Floats, ddof: int, *, noise_floor_ratio: float = 0.0) -> None:
        self._ddof = ddof
        self._floor = noise_floor_ratio
        self._likeness = 0.0
        self._centre = float(values[0]) if len(values) else 0.0  # far from 0 squares would lose their digits
        centred = values - self._centre
        self._sums: list[float] = [0.0, *np.cumsum(centred).tolist()]
        self._squares: list[float] = [0.0, *np.cumsum(centred * centred).tolist()]

    def alike(self, likeness: float) -> Levels:
        """The same levels, with the noise of a mean as neighbouring values that are alike make it.

        `likeness` is their lag-1 autocorrelation, a ratio of 0 to 0.9.
        """
        other = copy(self)
        other._likeness = likeness
        return other

    def chance(self, low: int, cut: int, high: int) -> float:
        """The p-value of a change of level at `cut`, between values[low:cut] and values[cut:high]."""
        n, m = cut - low, high - cut
        total_before, total_after = self._sums[cut] - self._sums[low], self._sums[high] - self._sums[cut]
        difference = total_after / m - total_before / n
        if abs(difference) < SAME_RATIO * abs(self._centre):
            return 1.0
        spread = self._spread(low, cut, total_before) + self._spread(cut, high, total_after)
        if self._floor:
            level = self._centre + total_before / n
            spread = max(spread, (n + m - 2) * (self._floor * level) ** 2)
        if self._likeness:
            shares = (mean_noise(self._likeness, n) / n, mean_noise(self._likeness, m) / m)
            spread *= sum(shares) / (1 / n + 1 / m)
        return _student_p(difference, spread, n, m)

    def jump(self, low: int, cut: int, high: int) -> Jump:
        """The same with both levels."""
        n, m = cut - low, high - cut
        mean_before = self._centre + (self._sums[cut] - self._sums[low]) / n
        mean_after = self._centre + (self._sums[high] - self._sums[cut]) / m
        return Jump(cut, self.chance(low, cut, high), mean_before, mean_after, n, m)

    def _spread(self, low: int, high: int, total: float) -> float:
        """(n - 1) times the variance: what this side adds to the pooled one."""
        n = high - low
        if n < 2:
            return 0.0
        around_mean = max(self._squares[high] - self._squares[low] - total * total / n, 0.0)
        return around_mean * (n - 1) / (n - self._ddof)


def mean_noise(likeness: float, n: int) -> float:
    """How much larger the variance of the mean of n values is when each resembles the one before it, as a factor.

    1 + 2 * sum((1 - k/n) * r^k), of an autoregressive process of the first order (Bartlett 1946); `likeness` is its
    lag-1 autocorrelation r, a ratio below 1.
    """
    rest = 1 - likeness
    return (1 + likeness) / rest - 2 * likeness * (1 - likeness**n) / (n * rest * rest)


def _student_p(difference: float, spread: float, n: int, m: int) -> float:
    """Two-sided p of Student's t-test with equal variances; 1 when there is nothing to tell the values apart."""
    freedom = n + m - 2
    if freedom < 1 or difference == 0:
        return 1.0
    error = sqrt(spread / freedom * (1 / n + 1 / m))
    return 2 * student_share(freedom, -abs(difference) / error) if error > 0 else 0.0


def any_cut_stands(stretches: Floats, p: float, least: int, ddof: int) -> NDArray[np.bool_]:
    """For each row of `stretches`, whether some cut with `least` values or more on either side has a p up to the limit.

    The share of the variance that a cut explains says it for all cuts at once, much cheaper than finding the best one.
    Rounding is on the side of True.
    """
    share, left, right = _explained(stretches.shape[1], p, least, ddof)
    around = stretches - stretches.mean(axis=1, keepdims=True)
    sums = around.cumsum(axis=1)[:, :-1]
    around *= around
    squares = around.cumsum(axis=1)
    sums *= sums
    sums *= share
    if ddof == 0:
        sums -= (left - right) * squares[:, :-1]
    return np.asarray((sums >= right * ((1 - 1e-9) * squares[:, -1:])).any(axis=1))


@lru_cache(maxsize=256)
def _explained(n: int, p: float, least: int, ddof: int) -> tuple[Floats, Floats, Floats]:
    """For every cut of n values: the weight of the squared sum before it, and of the squares on its left and right.

    These are the t-test's limit solved for the sums; a cut too close to an edge never reaches it.
    """
    before = np.arange(1.0, n)
    after = n - before
    left = (before - 1) / np.maximum(before - ddof, 1) if ddof == 0 else np.ones(n - 1)
    right = (after - 1) / np.maximum(after - ddof, 1) if ddof == 0 else np.ones(n - 1)
    share = n / (before * after) * (n - 2) / student_quantile(n - 2, p / 2) ** 2 + left / before + right / after
    share[np.minimum(before, after) < least] = -1.0
    return share, left, right


def merge(
    cuts: Sequence[int], levels: Levels, length: int, p: float, min_magnitude_ratio: float, *, stale_left: bool = False
) -> list[Jump]:
    """Take out the weakest cut until all have a p below the limit and are large enough.

    `stale_left` leaves the left neighbour of a cut that went with its old p, as Apache Otava 0.8.0 does.
    """
    edges = [0, *cuts, length]
    jumps = [levels.jump(*edges[i : i + 3]) for i in range(len(cuts))]
    chances = [jump.p for jump in jumps]
    while jumps:
        weakest = chances.index(max(chances))
        if chances[weakest] < p:
            weakest = min(range(len(jumps)), key=lambda i: jumps[i].magnitude_ratio)
            if jumps[weakest].magnitude_ratio > min_magnitude_ratio:
                break
        del jumps[weakest], chances[weakest], edges[weakest + 1]
        for i in (weakest, weakest + 1) if stale_left else (weakest - 1, weakest):
            if 0 <= i < len(jumps):
                jumps[i] = levels.jump(*edges[i : i + 3])
                chances[i] = jumps[i].p
    return jumps


def autocorrelation(values: Floats, cuts: Sequence[int]) -> float:
    """The lag-1 autocorrelation of the values around the level that each belongs to, as a ratio of -1 to 1.

    0 when they do not vary.
    """
    parts = np.split(values, list(cuts))
    around = [part - part.mean() for part in parts if len(part)]
    total = sum(float(part @ part) for part in around)
    return sum(float(part[:-1] @ part[1:]) for part in around) / total if total else 0.0
