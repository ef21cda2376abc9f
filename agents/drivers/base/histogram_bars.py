"""Percentile spectra from the bars of a histogram."""

from __future__ import annotations

from collections.abc import Sequence

from agents.base.errors import ParseError
from agents.results.report import Histogram, HistogramRow


def spectrum(bars: Sequence[tuple[float, int]], line: int | None = None) -> Histogram | None:
    """The spectrum of bars (pairs in order: upper bound in ms, samples in the bar); None when there is no sample.

    Raises ParseError (about `line`) when the bounds go down.
    """
    total = sum(count for _, count in bars)
    if not total:
        return None
    rows: list[HistogramRow] = []
    seen = 0
    for value_ms, count in bars:
        if rows and value_ms < rows[-1].value_ms:
            raise ParseError("the bounds of a histogram never go down, but those of this one do", line=line)
        seen += count
        rows.append(HistogramRow(value_ms, seen / total, seen))
    return Histogram(tuple(rows), total_count=total)
