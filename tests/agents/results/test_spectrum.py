"""The histogram of a report, made small enough to keep without saying less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agents.drivers.reading import read_report
from agents.results.report import Histogram, HistogramRow, LatencySummary, LoadReport
from agents.results.spectrum import Spectrum, spectrum_of

CASES = Path(__file__).parents[1] / "cases"
REPORT = LoadReport("wrk2", "wrk2", "open", "response_time")


def report_of(*rows: tuple[float, int]) -> LoadReport:
    total = rows[-1][1] if rows else 0
    histogram = Histogram(tuple(HistogramRow(value, count / total, count) for value, count in rows))
    return replace(REPORT, latency=LatencySummary(histogram=histogram))


@pytest.mark.parametrize(
    "rows, kept",
    [
        (((1.0, 5), (2.0, 8)), Spectrum((1.0, 2.0), (5, 8))),
        (((0.0, 1), (0.012345, 3)), Spectrum((0.0, 0.0124), (1, 3))),
        (((1234.0, 2), (1235.5, 4), (99999.0, 5)), Spectrum((1240.0, 100000.0), (4, 5))),
        (((1.23, 2), (1.23, 3)), Spectrum((1.23,), (3,))),
    ],
    ids=["as they are", "rounded up", "values that become one", "rows of one value"],
)
def test_values_are_rounded_up_to_three_digits(rows: tuple[tuple[float, int], ...], kept: Spectrum) -> None:
    assert spectrum_of(report_of(*rows)) == kept
    assert kept.total == rows[-1][1]


@pytest.mark.parametrize("report", [REPORT, replace(REPORT, latency=LatencySummary(mean_ms=1.0)), report_of()])
def test_a_report_without_a_histogram_has_no_spectrum(report: LoadReport) -> None:
    assert spectrum_of(report) is None


def test_a_real_report_keeps_every_sample() -> None:
    path = next(path for path in sorted((CASES / "wrk2").glob("*.txt")) if "Detailed Percentile" in path.read_text())
    report = read_report("wrk2", path.read_text())
    found = spectrum_of(report)
    assert found is not None
    assert report.latency is not None
    assert report.latency.histogram is not None
    assert found.total == report.latency.histogram.total_count
    assert list(found.values_ms) == sorted(set(found.values_ms))
