"""Overload arithmetic against published runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.saturation import Saturation, examine

A10: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A10_saturation"]
RUNS = {run["id"]: run for run in A10["runs"]}


def published(run: dict[str, Any]) -> Saturation:
    return examine(
        offered_rate_rps=A10["R"],
        throughput_rps=run["X"],
        requests=run["N"],
        duration_s=A10["T"],
        connections=A10["conns"],
        threads=A10["threads"],
        latency_max_ms=run["max"] * 1000,
        errors_connect=run["connect"],
        errors_timeout=run["timeout"],
    )


@pytest.mark.parametrize("name", RUNS)
def test_published_runs_come_out_to_the_printed_digit(name: str) -> None:
    run = RUNS[name]
    seen = published(run)
    assert list(seen.flags) == run["flags"]
    assert seen.window_start_s == pytest.approx(A10["C"])
    assert seen.t_last_s == pytest.approx(run["t_last"], abs=0.005)
    assert seen.predicted_mean_ms == pytest.approx(run["pred_mean"] * 1000, abs=5)
    if "pred_sd" in run:
        assert seen.predicted_stdev_ms == pytest.approx(run["pred_sd"] * 1000, abs=5)
    if "active_rate" in run:
        assert seen.active_rate_rps == pytest.approx(run["active_rate"], abs=15)


def test_prediction_meets_what_the_dead_load_really_reported() -> None:
    seen = published(RUNS["grace_default"])
    assert seen.predicted_stdev_ms == pytest.approx(3250, rel=0.02)
    assert seen.predicted_max_ms == pytest.approx(19070, rel=0.001)


def test_an_overloaded_small_machine_is_predicted_within_a_few_percent() -> None:
    seen = examine(
        offered_rate_rps=500_000,
        throughput_rps=37_698.56,
        requests=2_262_130,
        duration_s=60,
        connections=400,
        threads=8,
        latency_max_ms=55_800,
    )
    assert seen.flags == ("SATURATED",)
    assert seen.predicted_mean_ms == pytest.approx(32_080, rel=0.03)


@pytest.mark.parametrize(
    ("throughput_rps", "flags"),
    [(998, ()), (995, ()), (994, ("NEARLY_SATURATED",)), (990, ("NEARLY_SATURATED",)), (989, ("SATURATED",))],
)
def test_the_share_of_the_offered_rate_decides_saturation(throughput_rps: float, flags: tuple[str, ...]) -> None:
    seen = examine(
        offered_rate_rps=1000,
        throughput_rps=throughput_rps,
        requests=int(throughput_rps * 60),
        duration_s=60,
        connections=10,
        threads=2,
        latency_max_ms=700,
    )
    assert seen.flags == flags
    assert (seen.predicted_mean_ms is not None) == ("SATURATED" in flags)


def test_a_run_shorter_than_the_calibration_has_latency_from_its_start() -> None:
    seen = examine(
        offered_rate_rps=1000,
        throughput_rps=500,
        requests=4000,
        duration_s=8,
        connections=10,
        threads=2,
        latency_max_ms=4000,
    )
    assert seen.window_start_s == 0
    assert seen.predicted_mean_ms == pytest.approx(2000)


def test_load_that_died_during_calibration_leaves_nothing_to_predict() -> None:
    seen = examine(
        offered_rate_rps=1000,
        throughput_rps=50,
        requests=3000,
        duration_s=60,
        connections=10,
        threads=2,
        latency_max_ms=2000,
    )
    assert "LOAD_STOPPED_EARLY" in seen.flags
    assert seen.t_last_s == pytest.approx(5)
    assert seen.predicted_mean_ms is None


def test_without_a_longest_latency_the_end_of_the_load_is_unknown() -> None:
    seen = examine(
        offered_rate_rps=1000,
        throughput_rps=500,
        requests=30_000,
        duration_s=60,
        connections=None,
        threads=None,
        latency_max_ms=None,
    )
    assert seen.t_last_s is None
    assert seen.window_start_s == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offered_rate_rps": 0}, "offered_rate_rps must be positive"),
        ({"duration_s": float("nan")}, "duration_s must be positive"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_figures_that_cannot_be_are_refused(change: dict[str, float], message: str) -> None:
    figures: dict[str, Any] = {
        "offered_rate_rps": 1000,
        "throughput_rps": 500,
        "requests": 30_000,
        "duration_s": 60,
        "connections": 10,
        "threads": 2,
        "latency_max_ms": 5,
    }
    with pytest.raises(ValueError, match=message):
        examine(**(figures | change))
