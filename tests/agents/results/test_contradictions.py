"""Figures that cannot be true together are refused at every door."""

from __future__ import annotations

import json

import pytest

from agents.base.errors import ParseError
from agents.drivers.command.figures import report_of
from agents.drivers.reading import read_report
from agents.results.contradictions import contradiction_in, without_contradiction
from agents.results.report import LatencySummary, LoadReport

IMPOSSIBLE = [
    ({"latency_p50_ms": 90, "latency_p99_ms": 20}, "latency p50 (90 ms) is above p99 (20 ms)"),
    ({"latency_mean_ms": 50, "latency_max_ms": 20}, "the mean latency (50 ms) is above the longest (20 ms)"),
    ({"latency_mean_ms": 5, "latency_min_ms": 20}, "the mean latency (5 ms) is below the shortest (20 ms)"),
    ({"throughput_rps": 1000, "requests": 10, "duration_s": 60}, "are 60,000 requests, but 10 are counted"),
]


@pytest.mark.parametrize(("figures", "words"), IMPOSSIBLE)
def test_a_benchmark_of_one_s_own_is_refused(figures: dict[str, float], words: str) -> None:
    with pytest.raises(ParseError) as refused:
        report_of(figures)
    assert words in refused.value.message
    with pytest.raises(ParseError) as refused:
        read_report("command", json.dumps(figures))
    assert words in refused.value.message


@pytest.mark.parametrize(
    "figures",
    [
        {"latency_p50_ms": 20, "latency_p99_ms": 20, "latency_max_ms": 20},
        {"latency_mean_ms": 0.631, "latency_p50_ms": 0, "latency_max_ms": 1},
        {"latency_mean_ms": 110, "latency_p95_ms": 80, "latency_max_ms": 41_000},
        {"throughput_rps": 1000, "requests": 60_100, "duration_s": 60},
        {"throughput_rps": 0.2, "requests": 2, "duration_s": 5},
    ],
)
def test_rounding_and_outliers_are_no_contradiction(figures: dict[str, float]) -> None:
    assert contradiction_in(report_of(figures)) is None


def test_a_tool_whose_figures_contradict_each_other_has_no_usable_report() -> None:
    latency = LatencySummary(percentiles_ms={"50": 90.0, "99": 20.0})
    report = without_contradiction(LoadReport("wrk", "wrk-text", "closed", "service_time", latency=latency))
    assert (report.usable, report.why) == (False, "latency p50 (90 ms) is above p99 (20 ms)")
