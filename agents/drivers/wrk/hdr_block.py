"""The HdrHistogram percentile block that wrk2 prints with --latency."""

from __future__ import annotations

import re

from agents.drivers.wrk.units import DURATION, read_percentiles
from agents.formats.report_lines import Lines
from agents.results.report import Histogram, HistogramRow, LatencySummary

_PERCENTILE = re.compile(rf" *([0-9]{{1,3}}\.[0-9]{{3}})% +({DURATION})", re.ASCII)
_SPECTRUM = re.compile(r"  Detailed Percentile spectrum:")
_COLUMNS = re.compile(r" +Value +Percentile +TotalCount +1/\(1-Percentile\)")
_ROW = re.compile(
    r" *([0-9]{1,15}\.[0-9]{3}) +([01]\.[0-9]{6,12}) +([0-9]{1,18}) +(?:[0-9]{1,18}\.[0-9]{2}|inf)", re.ASCII
)
_NUMBER = r"([0-9]{1,15}\.[0-9]{3}|-?nan)"
_MEAN = re.compile(rf"#\[Mean += *{_NUMBER}, StdDeviation += *{_NUMBER}\]", re.ASCII)
_MAX = re.compile(rf"#\[Max += *{_NUMBER}, Total count += *([0-9]{{1,18}})\]", re.ASCII)
_BUCKETS = re.compile(r"#\[Buckets += *[0-9]{1,9}, SubBuckets += *[0-9]{1,9}\]", re.ASCII)
_RULE = re.compile(r"-{10,}")


def read_block(lines: Lines) -> LatencySummary | None:
    """The block after its "Latency Distribution" line, up to and with the rule below it.

    None when no sample was recorded: the zeros that are printed then are not figures. Raises ParseError.
    """
    percentiles = read_percentiles(lines, _PERCENTILE)
    if "100" not in percentiles:
        raise lines.error("expected the percentiles up to 100.000%")
    lines.skip_blank()
    lines.expect(_SPECTRUM, "'Detailed Percentile spectrum:'")
    lines.expect(_COLUMNS, "the column titles of the percentile spectrum")
    lines.skip_blank()
    histogram = _read_spectrum(lines)
    lines.take(_RULE)
    lines.skip_blank()
    if not histogram.total_count:
        return None
    return LatencySummary(percentiles_ms=percentiles, histogram=histogram)


def _read_spectrum(lines: Lines) -> Histogram:
    rows: list[HistogramRow] = []
    while match := lines.take(_ROW):
        row = HistogramRow(float(match[1]), float(match[2]), int(match[3]))
        if rows and (row.percentile < rows[-1].percentile or row.total_count < rows[-1].total_count):
            raise lines.error("a percentile spectrum never goes down, but the row above this line does")
        rows.append(row)
    mean = lines.expect(_MEAN, "a row of the percentile spectrum or '#[Mean'")
    top = lines.expect(_MAX, "'#[Max'")
    lines.expect(_BUCKETS, "'#[Buckets'")
    total_count = int(top[2])
    if not rows or rows[-1].percentile != 1.0 or rows[-1].total_count != total_count:
        raise lines.error(f"the percentile spectrum above does not end with all {total_count} samples")
    return Histogram(tuple(rows), _known(mean[1]), _known(mean[2]), _known(top[1]), total_count)


def _known(text: str) -> float | None:
    return None if "nan" in text else float(text)
