"""The worked examples are complete, and every one of them holds some code to its printed digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.drivers.jmeter.jtl.files import read_jtl_text
from agents.drivers.wrk.units import duration_ms, rate, size_bytes
from agents.formats.hdr_log import read_log
from experiments.analysis.percentiles import CountedValues, curve_of

HERE = Path(__file__)
APPENDIX = HERE.with_name("worked_examples.json")
KEYS = (
    "A1_verdict",
    "A1_blocked",
    "A2_mwu_min_p",
    "A2_hl",
    "A3_kalibera",
    "A4_multiple",
    "A5_power",
    "A6_changepoint",
    "A7_usl",
    "A8_quantised",
    "A9_instances",
    "A10_saturation",
    "A11_wrk_units",
    "A12_hdr",
    "A13_jmeter",
    "A14_steady",
    "A15_cpu_quadrant",
    "A16_search",
)


EXAMPLES: dict[str, Any] = json.loads(APPENDIX.read_text())
A11 = EXAMPLES["A11_wrk_units"]
A12 = EXAMPLES["A12_hdr"]
A13 = EXAMPLES["A13_jmeter"]
HEADER = "timeStamp,elapsed,label,responseCode,success\n"


def test_the_whole_appendix_is_there() -> None:
    assert tuple(EXAMPLES) == KEYS


def test_every_worked_example_is_used_by_a_test() -> None:
    tests = [path.read_text() for path in HERE.parents[2].rglob("*.py")]
    assert [key for key in KEYS if not any(f'["{key}"]' in text for text in tests)] == []


@pytest.mark.parametrize(("text", "value"), A11.items())
def test_a_figure_of_wrk_is_read_in_its_unit(text: str, value: float) -> None:
    if text.endswith("B"):
        assert round(size_bytes(text)) == value
    elif text.endswith("k"):
        assert rate(text) == value
    else:
        assert duration_ms(text) == pytest.approx(1000 * value)


def counted(bars: dict[str, int]) -> CountedValues:
    """The example counts microseconds."""
    return CountedValues([int(us) / 1000 for us in bars], list(np.cumsum(list(bars.values()))), exact=True)


def test_histograms_of_two_drivers_are_added_and_their_percentiles_never_averaged() -> None:
    found = curve_of([counted(A12["A"]), counted(A12["B"])], marks=(50, 90, 99))
    p50, p90, p99 = (point.value_ms * 1000 for point in found.points)
    assert (p50, p90) == (A12["merged"]["p50"], A12["merged"]["p90"])
    assert p99 == pytest.approx(A12["merged"]["p99"], rel=1e-3)  # a histogram of three digits gives its bar's upper end
    assert p99 > 1.9 * A12["wrong_avg_p99"]
    total = sum(int(us) * n for side in "AB" for us, n in A12[side].items())
    assert total / found.samples == pytest.approx(A12["mean_us"], abs=0.005)


def test_a_histogram_log_gives_the_figures_that_its_own_library_gives() -> None:
    log = read_log((Path(__file__).parents[2] / "agents/cases/hdr-log/jhiccup-2.0.7.hlog").read_text())
    found = {"hists": log.intervals, "count": log.total, "p99.9": log.value_at(99.9), "max": max(log.counts)}
    assert found == A12["jhiccup_V2_log"]


def test_percentiles_of_results_are_those_of_the_aggregate_report() -> None:
    rows = "".join(f"{1_700_000_000_000 + i},{ms},x,200,true\n" for i, ms in enumerate(A13["ms"] * 100))
    found = read_jtl_text(HEADER + rows).latency
    assert found is not None
    assert {f"p{p}": found.percentiles_ms[p] for p in ("50", "90", "95")} == A13["aggregate"]


def test_the_html_dashboards_percentiles_are_others_so_that_the_results_are_read_instead() -> None:
    p50, p90 = np.percentile(A13["ms"], (50, 90), method="weibull")
    assert {"p50": p50, "p90": p90} == pytest.approx(A13["legacy"])
    assert A13["legacy"] != {name: A13["aggregate"][name] for name in A13["legacy"]}
