"""The points of a history: one per night, with its repetitions inside.

Runs of one night share what that night was like, so five of them say less than five nights. What repeats is therefore
the point (the upper level of Kalibera and Jones 2013); its runs give its mean and its spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOGETHER_S = 3600.0
"""Single runs that end within an hour of the first of them, on one boot, are one point."""


@dataclass(frozen=True)
class HistoryPoints:
    """Points in the order of their first runs. `value` is the mean of the runs, `spread` their standard deviation.

    `point_of` says for each run, in the order given, which point it is in. `first` and `last` are the places of a
    point's first and last run, `at_s` is when the first one ended; `spread` is nan where there is one run.
    """

    point_of: Integers
    at_s: Floats
    value: Floats
    spread: Floats
    count: Integers
    first: Integers
    last: Integers

    def __len__(self) -> int:
        return len(self.at_s)

    def members(self) -> Iterator[Integers]:
        """For each point the places of its runs."""
        order = np.argsort(self.point_of, kind="stable")
        yield from np.split(order, np.cumsum(self.count)[:-1]) if len(self) else ()


def points_of(at_s: Floats, key: Integers, value: Floats) -> HistoryPoints:
    """The points of runs that stand in the order of their ends (`at_s`, in seconds).

    `value` is one figure per run, in any unit, as long as the other two. `key` above 0 is an experiment's variant: all
    its runs are one point, however long it took. Others are single runs, `key` 0 or below the boot of the server's
    host: a point ends an hour after its first run.
    """
    if not len(at_s):
        none, places = np.empty(0), np.empty(0, dtype=np.int64)
        return HistoryPoints(places, none, none, none, places, places, places)
    label = np.where(key > 0, key, -1 - _sittings(at_s, key))
    _, first, found = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    point_of, first = rank[found], first[order]
    count = np.bincount(point_of)
    mean = np.bincount(point_of, value) / count
    around = np.bincount(point_of, (value - mean[point_of]) ** 2)
    spread = np.full(len(count), np.nan)
    np.divide(around, count - 1, out=spread, where=count > 1)
    last = np.zeros(len(count), dtype=np.int64)
    np.maximum.at(last, point_of, np.arange(len(at_s)))
    return HistoryPoints(point_of, at_s[first], mean, np.sqrt(spread), count, first, last)


def _sittings(at_s: Floats, key: Integers) -> Integers:
    """For each run the place of the first one of its hour and boot; those of experiments stay by themselves."""
    found = np.arange(len(at_s))
    singles = np.flatnonzero(key <= 0)
    if not len(singles):
        return found
    singles = singles[np.argsort(key[singles], kind="stable")]
    times, keys = at_s[singles], key[singles]
    begins = np.ones(len(singles), dtype=bool)
    begins[1:] = (np.diff(keys) != 0) | (np.diff(times) >= TOGETHER_S)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(singles))
    for start, end in zip(starts, ends, strict=True):
        if times[end - 1] - times[start] >= TOGETHER_S:  # one long row without an hour's pause
            begin = int(start)
            for place in range(begin + 1, int(end)):
                if times[place] - times[begin] >= TOGETHER_S:
                    begins[place], begin = True, place
    starts = np.flatnonzero(begins)
    found[singles] = singles[starts][np.cumsum(begins) - 1]
    return found
