"""The latency histogram of a report in a form that can be kept and added to others, whatever tool it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from agents.results.report import LoadReport

DIGITS = 3
"""Significant digits of a kept value, as in an HdrHistogram of three digits: half a percent wide at most."""


@dataclass(frozen=True)
class Spectrum:
    """Samples at or below each value: two lists of equal length, both rising; the last count is all samples.

    `exact`: each sample has one of the values, but for rounding; else it lies anywhere above the value before.
    """

    values_ms: tuple[float, ...]
    counts: tuple[int, ...]
    exact: bool = False

    @property
    def total(self) -> int:
        return self.counts[-1] if self.counts else 0


def spectrum_of(report: LoadReport) -> Spectrum | None:
    """The histogram of the report's latency, its values rounded up to three digits; None when the tool gave none."""
    histogram = report.latency.histogram if report.latency else None
    if histogram is None or not histogram.rows or not histogram.rows[-1].total_count:
        return None
    counts: dict[float, int] = {}
    for row in histogram.rows:
        counts[_rounded_up(row.value_ms)] = row.total_count  # the last row of a value counts all below it
    return Spectrum(tuple(counts), tuple(counts.values()), histogram.exact)


def _rounded_up(value_ms: float) -> float:
    """Up, so that a percentile is never said to be lower than it was."""
    if value_ms <= 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value_ms)) - DIGITS + 1)
    return round(math.ceil(round(value_ms / step, 6)) * step, 9)
