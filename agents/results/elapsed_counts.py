"""How many requests took how many milliseconds: exact, compact, and added up over several load tools."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agents.results.report import Histogram, HistogramRow, LatencySummary, nearest_rank

PERCENTILES = (("50", 2), ("75", 4), ("90", 10), ("95", 20), ("99", 100), ("99.9", 1000))
"""Each with the number of samples from which on it is a value of its own."""


@dataclass(frozen=True)
class ElapsedCounts:
    """`counts` requests took `elapsed_ms`, the times rising; at least one. Arrays: 16 bytes for each time."""

    elapsed_ms: array[int]
    counts: array[int]

    @classmethod
    def of(cls, elapsed_ms: Iterable[int], counts: Iterable[int]) -> ElapsedCounts:
        return cls(array("q", elapsed_ms), array("q", counts))

    def __len__(self) -> int:
        return len(self.elapsed_ms)

    def latency(self, *, histogram: bool = False) -> LatencySummary:
        """Exact figures; a percentile is the nearest rank. With the histogram only when asked: it is large."""
        upto = list(accumulate(self.counts))
        total = upto[-1]
        mean = sum(v * n for v, n in zip(self.elapsed_ms, self.counts, strict=True)) / total
        variance = sum(n * (v - mean) ** 2 for v, n in zip(self.elapsed_ms, self.counts, strict=True)) / total
        exact = None
        if histogram:
            steps = zip(self.elapsed_ms, upto, strict=True)
            exact = Histogram(
                tuple(HistogramRow(float(v), n / total, n) for v, n in steps),
                mean_ms=mean,
                total_count=total,
                exact=True,
            )
        return LatencySummary(
            mean_ms=mean,
            stdev_ms=math.sqrt(variance),
            min_ms=float(self.elapsed_ms[0]),
            max_ms=float(self.elapsed_ms[-1]),
            percentiles_ms={
                name: float(self.elapsed_ms[bisect_left(upto, nearest_rank(float(name), total))])
                for name, enough in PERCENTILES
                if total >= enough
            },
            histogram=exact,
        )


def added(several: Sequence[ElapsedCounts]) -> ElapsedCounts:
    """The counts of all together."""
    total: Counter[int] = Counter()
    for one in several:
        for elapsed_ms, count in zip(one.elapsed_ms, one.counts, strict=True):
            total[elapsed_ms] += count
    return ElapsedCounts.of(sorted(total), (total[elapsed_ms] for elapsed_ms in sorted(total)))
