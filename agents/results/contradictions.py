"""Figures of one report that cannot be true together, whatever tool it is of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from agents.results.report import LatencySummary, LoadReport

ROUNDING_RATIO, ROUNDING_MS = 0.01, 1.0
"""By how much two printed times may contradict each other: tools print few digits, some whole milliseconds."""
MEAN_RATIO = 0.1
"""By how much a mean may be above the longest: ab works its mean out from rate and concurrency, with pauses in it."""
COUNT_RATIO, COUNT = 1.5, 5
"""By which factor, and by how many requests, rate x duration may differ from the count: tools count failures or not."""


def contradiction_in(report: LoadReport) -> str | None:
    """The first two figures that contradict each other, as a sentence without its full stop; None when none do."""
    found = next(_of_latency(report.latency), None) if report.latency is not None else None
    return found or next(_of_counts(report), None)


def without_contradiction(report: LoadReport) -> LoadReport:
    """The report; one whose figures contradict each other is not usable."""
    why = contradiction_in(report)
    return report if why is None or not report.usable else replace(report, usable=False, why=why)


def _of_latency(latency: LatencySummary) -> Iterator[str]:
    rising = sorted(latency.percentiles_ms.items(), key=lambda item: float(item[0]))
    named = [
        *([("min", latency.min_ms)] if latency.min_ms is not None else []),
        *((f"p{name}", value) for name, value in rising),
        *([("max", latency.max_ms)] if latency.max_ms is not None else []),
    ]
    for (lower, low_ms), (upper, high_ms) in pairwise(named):
        if _above(low_ms, high_ms):
            yield f"latency {lower} ({low_ms:g} ms) is above {upper} ({high_ms:g} ms)"
    if (
        latency.mean_ms is not None
        and latency.max_ms is not None
        and latency.mean_ms > latency.max_ms * (1 + MEAN_RATIO) + ROUNDING_MS
    ):
        yield f"the mean latency ({latency.mean_ms:g} ms) is above the longest ({latency.max_ms:g} ms)"
    if latency.mean_ms is not None and latency.min_ms is not None and _above(latency.min_ms, latency.mean_ms):
        yield f"the mean latency ({latency.mean_ms:g} ms) is below the shortest ({latency.min_ms:g} ms)"


def _of_counts(report: LoadReport) -> Iterator[str]:
    requests, rate, duration_s = report.requests, report.throughput_rps, report.duration_s
    if requests is None or not rate or not duration_s:
        return
    by_rate = rate * duration_s
    counted = requests + report.errors.total
    if by_rate > COUNT_RATIO * counted + COUNT or requests > COUNT_RATIO * by_rate + COUNT:
        yield (f"{rate:,.6g} requests/s for {duration_s:g} s are {by_rate:,.0f} requests, but {requests:,} are counted")


def _above(value_ms: float, limit_ms: float) -> bool:
    return value_ms > limit_ms * (1 + ROUNDING_RATIO) + ROUNDING_MS
