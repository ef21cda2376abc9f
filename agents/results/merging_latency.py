"""The latency of all requests of several load tools. Percentiles are never averaged."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from agents.results.elapsed_counts import PERCENTILES
from agents.results.report import Histogram, HistogramRow, LatencySummary, nearest_rank

Columns = tuple[list[float], list[int]]

RESOLUTION_RATIO = 0.05
"""How wide the histograms may leave a percentile open; one that is more open is left out."""

NO_HISTOGRAMS = "no percentiles: they need the histogram of every load tool, and percentiles cannot be averaged"
TOO_COARSE = "no p{}: the histograms of the load tools are too coarse for it"


def latency_of_all(
    summaries: Sequence[LatencySummary | None], requests: Sequence[int | None], notes: list[str]
) -> LatencySummary | None:
    """The latency of all requests; None unless every host has its own."""
    known = [summary for summary in summaries if summary is not None]
    if len(known) < len(summaries):
        return None
    histograms = [summary.histogram for summary in known if summary.histogram is not None]
    weights = [
        summary.histogram.total_count if summary.histogram and summary.histogram.total_count else count
        for summary, count in zip(known, requests, strict=True)
    ]
    mean_ms, stdev_ms = _moments(known, weights)
    smallest = [summary.min_ms for summary in known if summary.min_ms is not None]
    largest = [summary.max_ms for summary in known if summary.max_ms is not None]
    merged = LatencySummary(
        mean_ms,
        stdev_ms,
        min(smallest) if len(smallest) == len(known) else None,
        max(largest) if len(largest) == len(known) else None,
    )
    names = set.intersection(*(set(summary.percentiles_ms) for summary in known))
    if len(histograms) < len(known):
        if names:
            notes.append(NO_HISTOGRAMS)
        return merged
    if all(histogram.exact for histogram in histograms):  # together they may have enough samples for one more
        total = sum(histogram.total_count or 0 for histogram in histograms)
        names |= {name for name, enough in PERCENTILES if total >= enough}
    percentiles: dict[str, float] = {}
    for name in sorted(names, key=float):
        of_each = [summary.percentiles_ms[name] for summary in known if name in summary.percentiles_ms]
        if (value := percentile_ms(histograms, float(name), of_each)) is None:
            notes.append(TOO_COARSE.format(name))
        else:
            percentiles[name] = value
    return replace(merged, percentiles_ms=percentiles, histogram=merge_histograms(histograms))


def _moments(summaries: Sequence[LatencySummary], weights: Sequence[int | None]) -> tuple[float | None, float | None]:
    """Mean and standard deviation of all requests, each host weighted by its requests; None where one is unknown."""
    total = sum_known(weights)
    means = [summary.mean_ms for summary in summaries]
    mean_ms = total_known([None if m is None or w is None else m * w for m, w in zip(means, weights, strict=True)])
    if not total or mean_ms is None:
        return None, None
    mean_ms /= total
    deviations: list[float | None] = []
    for summary, weight in zip(summaries, weights, strict=True):
        known = summary.stdev_ms is not None and summary.mean_ms is not None and weight is not None
        off = (summary.stdev_ms or 0) ** 2 + ((summary.mean_ms or 0) - mean_ms) ** 2
        deviations.append((weight or 0) * off if known else None)
    variance = total_known(deviations)
    return mean_ms, None if variance is None else math.sqrt(variance / total)


def percentile_ms(histograms: Sequence[Histogram], percentile: float, of_each: Sequence[float] = ()) -> float | None:
    """The percentile (nearest rank, 0..100) of all samples, never too low; None where the rows leave it too open.

    `of_each` are the same percentile of each histogram, where the tool printed it: that of all samples is never below
    the lowest of them and never above the highest.
    """
    columns = [_columns(histogram) for histogram in histograms]
    total = sum(counts[-1] for _, counts in columns if counts)
    if not total:
        return None
    values = sorted({value for row_values, _ in columns for value in row_values})
    if percentile >= 100:
        return values[-1]
    rank = nearest_rank(percentile, total)
    above = next(value for value in values if _at_least(columns, value) >= rank)
    if all(histogram.exact for histogram in histograms):
        return above
    below = max((value for value in values if _at_most(columns, value) < rank), default=0.0)
    if of_each:
        above, below = min(above, max(of_each)), max(below, min(of_each))
    return above if above - below <= RESOLUTION_RATIO * above else None


def merge_histograms(histograms: Sequence[Histogram]) -> Histogram:
    """The spectrum of all samples: at each value, the samples that surely are at or below it."""
    columns = [_columns(histogram) for histogram in histograms]
    values = sorted({value for row_values, _ in columns for value in row_values})
    counts = [_at_least(columns, value) for value in values]
    total = counts[-1] if counts else 0
    rows = [HistogramRow(v, n / total, n) for v, n in zip(values, counts, strict=True)] if total else []
    largest = [histogram.max_ms for histogram in histograms if histogram.max_ms is not None]
    exact = all(histogram.exact for histogram in histograms)
    return Histogram(tuple(rows), max_ms=max(largest, default=None), total_count=total, exact=exact)


def _columns(histogram: Histogram) -> Columns:
    return [row.value_ms for row in histogram.rows], [row.total_count for row in histogram.rows]


def _at_least(columns: Sequence[Columns], value_ms: float) -> int:
    """How many samples are at or below the value at least: those of the last rows up to it."""
    return sum(counts[at - 1] for values, counts in columns if (at := bisect_right(values, value_ms)))


def _at_most(columns: Sequence[Columns], value_ms: float) -> int:
    """How many samples are at or below the value at most: between two rows, all of the row above may be."""
    total = 0
    for values, counts in columns:
        at = bisect_right(values, value_ms)
        exact = at > 0 and values[at - 1] == value_ms
        if counts:
            total += counts[at - 1] if exact else counts[min(at, len(counts) - 1)]
    return total


def sum_known(values: Sequence[int | None]) -> int | None:
    """The sum; None when one is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def total_known(values: Sequence[float | None]) -> float | None:
    """The sum, in the unit of the values; None when one is not known."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None
