"""Putting together what several load tools report of one phase of load. Percentiles are never averaged."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from agents.errors import PlanError
from agents.report import Histogram, HistogramRow, LatencySummary, LoadErrors, LoadReport, nearest_rank

Same = TypeVar("Same")
Columns = tuple[list[float], list[int]]

SAME_WINDOW_RATIO = 0.02
"""By how much the durations may differ for the throughputs to be of one window."""

RESOLUTION_RATIO = 0.05
"""How wide the histograms may leave a percentile open; one that is more open is left out."""

NO_HISTOGRAMS = "no percentiles: they need the histogram of every load tool, and percentiles cannot be averaged"
NO_OWN_METRICS = "no {}: how figures of a benchmark's own are put together is not known; they stand with each tool"
TOO_COARSE = "no p{}: the histograms of the load tools are too coarse for it"


def merge(reports: Sequence[LoadReport]) -> LoadReport:
    """The report of all load tools together; all loaded the same server in the same window with the same tool.

    Rates and counts are summed. Percentiles come from the histograms, or are left out and `notes` says so. PlanError
    when there is no report, or the tools or their kinds of load differ.
    """
    if not reports:
        raise PlanError("there is no report to put together", hint="Did no load tool run?")
    first = reports[0]
    if len(reports) == 1:
        return first
    for name in ("tool", "format", "load_model", "latency_basis"):
        if len(found := {str(getattr(report, name)) for report in reports}) > 1:
            raise PlanError(
                f"the reports of the load tools differ in {name}: {', '.join(sorted(found))}",
                hint="Run the same tool with the same kind of load each time.",
            )
    notes: list[str] = []
    latency = _latency([report.latency for report in reports], [report.requests for report in reports], notes)
    uncorrected = _latency(
        [report.uncorrected_latency for report in reports], [report.requests for report in reports], []
    )
    if own := dict.fromkeys(metric.name for report in reports for metric in report.own_metrics):
        notes.append(NO_OWN_METRICS.format(", ".join(own)))
    durations = [report.duration_s for report in reports if report.duration_s is not None]
    why = _why(reports, durations)
    return LoadReport(
        first.tool,
        first.format,
        first.load_model,
        first.latency_basis,
        complete=all(report.complete for report in reports),
        error=next((report.error for report in reports if report.error), None),
        usable=why is None,
        why=why,
        url=_same([report.url for report in reports]),
        threads=_sum([report.threads for report in reports]),
        connections=_sum([report.connections for report in reports]),
        users=_sum([report.users for report in reports]),
        offered_rate_rps=_total([report.offered_rate_rps for report in reports]),
        duration_nominal_s=_same([report.duration_nominal_s for report in reports]),
        duration_s=max(durations, default=None),
        requests=_sum([report.requests for report in reports]),
        throughput_rps=_total([report.throughput_rps for report in reports]),
        bytes_read=_sum([report.bytes_read for report in reports]),
        bytes_per_s=_total([report.bytes_per_s for report in reports]),
        body_bytes=_sum([report.body_bytes for report in reports]),
        status_codes=_counts([report.status_codes for report in reports]),
        error_messages=_counts([report.error_messages for report in reports]),
        errors=_errors([report.errors for report in reports]),
        latency=latency,
        uncorrected_latency=uncorrected,
        notes=tuple(dict.fromkeys([*notes, *(note for report in reports for note in report.notes)])),
    )


def _why(reports: Sequence[LoadReport], durations: Sequence[float]) -> str | None:
    """Why the figures must not enter a comparison: a tool's own reason, or that the windows differ."""
    bad = [report.why or report.error or "no reason is known" for report in reports if not report.usable]
    if bad:
        return f"{len(bad)} of {len(reports)} load tools: {bad[0]}"
    if durations and max(durations) - min(durations) > SAME_WINDOW_RATIO * max(durations):
        return f"the load tools loaded for {min(durations):g} s to {max(durations):g} s, so their rates do not add up"
    return None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _same(values: Sequence[Same | None]) -> Same | None:
    return values[0] if all(value == values[0] for value in values) else None


def _counts(counted: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in counted:
        total.update(counts)
    return dict(total)


def _errors(errors: Sequence[LoadErrors]) -> LoadErrors:
    """What one host counted is counted, so that no error gets lost because another host cannot name its kind."""
    kinds = ("connect", "read", "write", "timeout", "status", "other")
    found = {kind: [n for one in errors if (n := getattr(one, kind)) is not None] for kind in kinds}
    return LoadErrors(**{kind: sum(counts) for kind, counts in found.items() if counts})


def _latency(
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
    percentiles: dict[str, float] = {}
    for name in sorted(names, key=float):
        of_each = [summary.percentiles_ms[name] for summary in known]
        if (value := percentile_ms(histograms, float(name), of_each)) is None:
            notes.append(TOO_COARSE.format(name))
        else:
            percentiles[name] = value
    return replace(merged, percentiles_ms=percentiles, histogram=merge_histograms(histograms))


def _moments(summaries: Sequence[LatencySummary], weights: Sequence[int | None]) -> tuple[float | None, float | None]:
    """Mean and standard deviation of all requests, each host weighted by its requests; None where one is unknown."""
    total = _sum(weights)
    means = [summary.mean_ms for summary in summaries]
    mean_ms = _total([None if m is None or w is None else m * w for m, w in zip(means, weights, strict=True)])
    if not total or mean_ms is None:
        return None, None
    mean_ms /= total
    deviations: list[float | None] = []
    for summary, weight in zip(summaries, weights, strict=True):
        known = summary.stdev_ms is not None and summary.mean_ms is not None and weight is not None
        off = (summary.stdev_ms or 0) ** 2 + ((summary.mean_ms or 0) - mean_ms) ** 2
        deviations.append((weight or 0) * off if known else None)
    variance = _total(deviations)
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
