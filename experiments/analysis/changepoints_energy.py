"""Where to cut a few values in two: the energy statistic Q of Matteson and James, for all cuts and ends at once.

Source: Matteson and James, arXiv 1306.4933 (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cut:
    """The best place to cut: `index` is the first value behind it, `q` how far both sides are apart there."""

    q: float
    index: int


class Distances:
    """All distances between the values, summed up so that every sum over a rectangle of them is four look-ups."""

    def __init__(self, values: Floats) -> None:
        below = _below(len(values))
        self._area = below @ np.abs(values[:, None] - values) @ below.T

    def best_cut(self, low: int, high: int, least: int) -> Cut:
        """The cut of values[low:high] with the highest Q(cut, end), `least` values or more on either side of it."""
        n = high - low
        area = self._area[low : high + 1, low : high + 1]
        if low > 0:
            area = area - area[0] - area[:, :1] + area[0, 0]
        square = area.diagonal()
        far, near, after, closed = _weights(n, least)
        q = far * area[1:-1, 2:]
        q -= near * square[1:-1, None]
        q -= after * square[2:]
        if closed is not None:
            q += closed
        place = int(q.argmax())
        return Cut(float(q.flat[place]), low + place // (n - 1) + 1)


@lru_cache(maxsize=256)
def _below(n: int) -> Floats:
    """A matrix that sums up: row i has ones before i."""
    return np.tril(np.ones((n + 1, n)), -1)


@lru_cache(maxsize=256)
def _weights(n: int, least: int) -> tuple[Floats, Floats, Floats, Floats | None]:
    """What the sums of distances are multiplied with in Q; rows: values before the cut, columns: values up to the end.

    With S(a, b) the sum over the first a and the first b values, the distances across the cut are S(cut, end) -
    S(cut, cut), those before it S(cut, cut) / 2, those behind it S(end, end) / 2 - S(cut, end) + S(cut, cut) / 2. The
    weights are 0 where nothing is behind the cut, and where one value alone has no distance to another of its side. The
    last is minus infinity where a side has fewer than `least` values.
    """
    before = np.arange(1.0, n)[:, None]
    end = np.arange(2.0, n + 1)[None, :]
    after = end - before
    there = after >= 1
    across = np.where(there, 2 / end, 0.0)
    left = np.divide(after, end * (before - 1), out=np.zeros_like(after), where=there & (before > 1))
    right = np.divide(before, end * (after - 1), out=np.zeros_like(after), where=after > 1)
    closed = np.where((before < least) | (after < least), -np.inf, 0.0) if least > 1 else None
    return across + 2 * right, across + left + right, right, closed
