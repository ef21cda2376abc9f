"""What CI is told, by case."""

from __future__ import annotations

import pytest

from experiments.judging.gate.decision import GateNumber, GateVerdict, Pair, decide, markdown, run_gate
from experiments.models import Run

FAILED = ("Run #3 of b: no tool",)


@pytest.mark.parametrize(
    "pairs, outcome, reason",
    [
        ([], "inconclusive", "no candidate"),
        ([Pair("b", "better", "b is better.")], "pass", "b is better."),
        ([Pair("b", "no_practical_difference", "same.")], "pass", "same."),
        ([Pair("b", "better_size_uncertain", "b is better.")], "pass", "b is better."),
        ([Pair("b", "worse", "b is worse.")], "fail", "b is worse."),
        ([Pair("b", "worse_size_uncertain", "b is worse.")], "fail", "b is worse."),
        ([Pair("b", "inconclusive", "4 more.")], "inconclusive", "4 more."),
        ([Pair("b", "invalid", "too few.")], "inconclusive", "too few."),
        ([Pair("b", None, "")], "inconclusive", "no verdict on b"),
        ([Pair("b", "invalid", "too few.", FAILED)], "error", "Run #3"),
        ([Pair("b", None, "", FAILED)], "error", "Run #3"),
        ([Pair("b", "better", "b is better.", FAILED)], "pass", "b is better."),
        ([Pair("b", "worse", "b is worse.", FAILED)], "fail", "b is worse."),
        ([Pair("b", "better", "."), Pair("c", "worse", "c is worse.")], "fail", "c is worse."),
        ([Pair("b", "better", "."), Pair("c", "inconclusive", "4 more.")], "inconclusive", "4 more."),
        ([Pair("b", "inconclusive", "."), Pair("c", "invalid", ".", FAILED)], "error", "Run #3"),
        ([Pair("b", "worse", "does not hold.", stands=False)], "inconclusive", "does not hold."),
        ([Pair("b", "better", "b is better.", stands=False)], "pass", "b is better."),
    ],
)
def test_the_worst_candidate_decides(pairs: list[Pair], outcome: str, reason: str) -> None:
    found, reasons = decide(pairs)
    assert found == outcome
    assert len(reasons) == 1
    assert reason in reasons[0]


@pytest.mark.parametrize(
    "state, outcome, validity, expected, finished",
    [
        ("queued", "", "", "inconclusive", False),
        ("measuring", "", "", "inconclusive", False),
        ("finished", "succeeded", "valid", "pass", True),
        ("finished", "succeeded", "suspect", "inconclusive", True),
        ("finished", "succeeded", "invalid", "fail", True),
        ("finished", "succeeded", "", "inconclusive", True),
        ("finished", "failed", "", "error", True),
        ("finished", "cancelled", "", "error", True),
        ("finished", "lost", "", "error", True),
    ],
)
def test_a_single_run_is_judged_by_its_validity(
    state: str, outcome: str, validity: str, expected: str, finished: bool
) -> None:
    verdict = run_gate(Run(number=1, state=state, outcome=outcome, validity=validity))
    assert (verdict.outcome, verdict.finished, len(verdict.reasons)) == (expected, finished, 1)


def test_latency_that_saturation_hides_is_no_number_of_the_verdict() -> None:
    figures = {"throughput_rps": 10.0, "latency_p99_ms": 5.0}
    run = Run(number=1, state="finished", outcome="succeeded", validity="valid", metrics=figures, hides_latency=True)
    assert [number.metric for number in run_gate(run).numbers] == ["throughput_rps"]


def test_names_cannot_break_out_of_the_markdown() -> None:
    number = GateNumber("throughput_rps", "Throughput", "requests/s", candidate="a|b](http://x)\n# h", outcome="better")
    text = markdown("a](http://evil) <img>\n# x", "http://here/", GateVerdict("pass", True, ("`r`",), (number,)))
    assert "](http://evil)" not in text.replace("\\](http://evil)", "")
    assert "\n# " not in text
    assert "<img" not in text.replace("\\<img", "")
    assert "| a\\|b" in text


def test_the_markdown_says_how_many_comparisons_decided() -> None:
    numbers = tuple(
        GateNumber("throughput_rps", "Throughput", "requests/s", candidate=name, decides=True, family_size=2)
        for name in "bc"
    )
    text = markdown("q", "http://here/", GateVerdict("pass", True, ("fine",), numbers))
    assert "Corrected for 2 comparisons that decide (Holm)." in text


def test_the_markdown_calls_too_few_repetitions_what_the_pages_call_them() -> None:
    number = GateNumber("throughput_rps", "Throughput", "requests/s", candidate="b", outcome="invalid")
    text = markdown("q", "http://here/", GateVerdict("inconclusive", True, ("too few.",), (number,)))
    assert "| no verdict |" in text
