"""Low or high CPU beside a low throughput: the worked example, the limits, the sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.quadrant import SAME_DEMAND_RATIO, Demand, judge_cpu
from experiments.analysis.verdict import Verdict, judge

A15: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A15_cpu_quadrant"]


def demand(side: dict[str, float]) -> Demand:
    return Demand(side["tps"], side["U"], A15["ncpu"])


BASE = demand(A15["base"])


def compared(before: Sequence[float], after: Sequence[float]) -> Verdict:
    """The CPU per request of these repetitions, in blocks."""
    return judge(before, after, higher_is_better=False, margin_ratio=SAME_DEMAND_RATIO, design="blocked")


def around(change_pct: float, *, noise_pct: float = 0.5, blocks: int = 5) -> Verdict:
    """So much more CPU per request, with this noise from block to block."""
    noise = [1 + noise_pct / 100 * (block % 3 - 1) for block in range(blocks)]
    return compared([0.36] * blocks, [0.36 * (1 + change_pct / 100) * factor for factor in noise])


LOW = (-42.0, -38.0)


@pytest.mark.parametrize(
    ("case", "change_pct", "quadrant"), [("low_low", 1.9, "low_cpu_low_tps"), ("high_low", 70.4, "high_cpu_low_tps")]
)
def test_the_worked_example(case: str, change_pct: float, quadrant: str) -> None:
    found = judge_cpu(BASE, demand(A15[case]), cost=around(change_pct), throughput_pct=LOW)
    assert found.quadrant == quadrant
    assert round(found.baseline_ms, 2) == A15["base"]["D_ms"]
    assert round(found.candidate_ms, 4) == A15[case]["D_ms"]


@pytest.mark.parametrize(
    ("throughput_pct", "change_pct", "quadrant"),
    [
        ((-1.0, 3.0), 0.0, "as_fast"),
        ((-4.9, -1.0), 0.0, "as_fast"),
        ((-15.0, -3.0), 0.0, "unclear"),
        ((-14.0, -6.0), 0.0, "low_cpu_low_tps"),
        ((15.0, 25.0), 0.0, "as_fast"),
        (LOW, -60.0, "cheaper_but_slower"),
        (LOW, 38.0, "high_cpu_low_tps"),
        (LOW, 9.8, "unclear"),
    ],
)
def test_a_cause_is_named_only_where_the_intervals_show_it(
    throughput_pct: tuple[float, float], change_pct: float, quadrant: str
) -> None:
    found = judge_cpu(BASE, Demand(9000, 0.81, 4), cost=around(change_pct), throughput_pct=throughput_pct)
    assert found.quadrant == quadrant


@pytest.mark.parametrize(
    ("cost", "throughput_pct", "quadrant", "said"),
    [
        (
            around(37.9, blocks=3),
            None,
            "too_early",
            "(+37.9 % [36.2, 39.6]). Too early to say why: 3 of 5 repetitions.",
        ),
        (around(37.9, blocks=4), LOW, "too_early", "Too early to say why: 4 of 5 repetitions."),
        (around(37.9), None, "too_early", "Too early to say why: there is no verdict on its throughput."),
        (None, None, "too_early", "(+70.4 %). Too early to say why: single runs show no noise."),
        (around(37.9, noise_pct=60), LOW, "unclear", "Whether a request costs more than before is not clear yet"),
        (around(1.0, noise_pct=20), LOW, "unclear", "Whether a request costs more than before is not clear yet"),
    ],
)
def test_without_an_interval_that_excludes_zero_no_cause_is_named(
    cost: Verdict | None, throughput_pct: tuple[float, float] | None, quadrant: str, said: str
) -> None:
    found = judge_cpu(BASE, demand(A15["high_low"]), cost=cost, throughput_pct=throughput_pct)
    assert found.quadrant == quadrant
    assert said in found.sentence
    assert "costlier" not in found.sentence
    assert "So requests wait" not in found.sentence


def test_a_throughput_that_is_not_the_server_s_names_no_cause() -> None:
    doubt = "The driver was full in 10 of 10 runs."
    found = judge_cpu(BASE, demand(A15["high_low"]), cost=around(70.4), throughput_pct=LOW, doubt=doubt)
    assert found.quadrant == "unclear"
    assert found.sentence.endswith(f"No cause is named: {doubt}")


def test_the_sentence_says_what_was_seen_and_where_to_look() -> None:
    low = judge_cpu(BASE, demand(A15["low_low"]), cost=around(1.9), throughput_pct=LOW, name="virtual threads").sentence
    assert low == (
        "virtual threads makes 6,000 requests/s, −40.0 % [−42.0, −38.0], with its CPUs 55 % busy; a request costs "
        "0.367 ms of CPU against 0.36 ms (+1.8 % [1.3, 2.3]), about the same work. So requests wait: for a lock, a "
        "pool of threads or connections, the network, or the load tool."
    )
    high = judge_cpu(
        BASE, demand(A15["high_low"]), cost=around(70.4), throughput_pct=LOW, name="virtual threads"
    ).sentence
    assert high == (
        "virtual threads makes 6,000 requests/s, −40.0 % [−42.0, −38.0], with its CPUs 92 % busy; a request costs "
        "0.613 ms of CPU against 0.36 ms (+70.2 % [69.3, 71.1]), so each request has become costlier."
    )


def test_a_side_without_throughput_has_no_cpu_per_request() -> None:
    with pytest.raises(ValueError):
        judge_cpu(BASE, Demand(0, 0.5, 4), cost=None, throughput_pct=None)


@pytest.mark.parametrize(
    ("busy_cpus", "server_cpus", "silent"),
    [
        (60.0, 50.0, False),
        (60.0, 0.02, True),
        (60.0, None, True),
        (60.0, 20.0, True),
        (None, 0.02, False),
        (None, None, False),
    ],
)
@pytest.mark.parametrize("whose", ["baseline", "candidate"])
def test_no_cause_is_named_where_machine_and_processes_disagree(
    busy_cpus: float | None, server_cpus: float | None, silent: bool, whose: str
) -> None:
    sides = {"baseline": BASE, "candidate": demand(A15["high_low"])}
    sides[whose] = replace(sides[whose], busy_cpus=busy_cpus, server_cpus=server_cpus)
    found = judge_cpu(sides["baseline"], sides["candidate"], cost=around(70.4), throughput_pct=LOW)
    assert (found.quadrant == "unclear") == silent
    assert ("so what a request costs is not known" in found.sentence) == silent
    assert ("ms of CPU" in found.sentence) != silent, "no cost of a request beside it"
