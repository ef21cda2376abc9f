"""Low or high CPU beside a low throughput: the worked example, the limits, the sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.quadrant import Demand, judge_cpu

A15: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A15_cpu_quadrant"]


def demand(side: dict[str, float]) -> Demand:
    return Demand(side["tps"], side["U"], A15["ncpu"])


BASE = demand(A15["base"])


@pytest.mark.parametrize(("case", "quadrant"), [("low_low", "low_cpu_low_tps"), ("high_low", "high_cpu_low_tps")])
def test_the_worked_example(case: str, quadrant: str) -> None:
    found = judge_cpu(BASE, demand(A15[case]))
    assert found.quadrant == quadrant
    assert round(found.baseline_ms, 2) == A15["base"]["D_ms"]
    assert round(found.candidate_ms, 4) == A15[case]["D_ms"]


@pytest.mark.parametrize(
    ("candidate", "high", "quadrant"),
    [
        (Demand(9600, 0.86, 4), None, "as_fast"),
        (Demand(9000, 0.81, 4), 0.97, "as_fast"),
        (Demand(9000, 0.81, 4), 0.94, "low_cpu_low_tps"),
        (Demand(12000, 0.95, 4), None, "as_fast"),
        (Demand(6000, 0.2, 4), None, "cheaper_but_slower"),
        (Demand(6000, 0.92, 2), None, "cheaper_but_slower"),
    ],
)
def test_throughput_is_low_only_when_its_whole_interval_is(
    candidate: Demand, high: float | None, quadrant: str
) -> None:
    assert judge_cpu(BASE, candidate, throughput_ci95_high=high).quadrant == quadrant


def test_the_sentence_says_what_was_seen_and_where_to_look() -> None:
    low = judge_cpu(BASE, demand(A15["low_low"]), name="virtual threads").sentence
    assert low == (
        "virtual threads makes 6,000 requests/s, −40.0 %, and its CPUs are 55 % busy; a request costs 0.367 ms of CPU "
        "against 0.36 ms (+1.9 %), about the same work. So requests wait: for a lock, a pool of threads or "
        "connections, the network, or the load tool."
    )
    high = judge_cpu(BASE, demand(A15["high_low"]), name="virtual threads").sentence
    assert high == (
        "virtual threads makes 6,000 requests/s, −40.0 %, with its CPUs 92 % busy: a request costs 0.613 ms of CPU "
        "against 0.36 ms (+70.4 %), so each request has become costlier."
    )


def test_a_side_without_throughput_has_no_cpu_per_request() -> None:
    with pytest.raises(ValueError):
        judge_cpu(BASE, Demand(0, 0.5, 4))
