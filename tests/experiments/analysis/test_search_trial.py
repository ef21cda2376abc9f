"""Whether a trial passed, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.analysis.search_trial import Judgement, TrialFigures, judge_trial

GOOD = TrialFigures(1000.0, 998.0, 0, 12.0, "latency p99", 50.0)
PROBLEM = "The hosts' clocks are 3.00 s apart."
BUSY = "The driver was 97 % busy."


@pytest.mark.parametrize(
    ("figures", "result", "reason"),
    [
        (GOOD, "pass", "Latency p99 12 ms, objective 50 ms, 998 of 1,000 requests/s (99.8 %)."),
        (
            replace(GOOD, latency_ms=50.0),
            "pass",
            "Latency p99 50 ms, objective 50 ms, 998 of 1,000 requests/s (99.8 %).",
        ),
        (replace(GOOD, latency_ms=50.1), "fail", "Latency p99 50.1 ms, objective 50 ms: missed."),
        (replace(GOOD, errors=3), "fail", "3 errors at 1,000 requests/s."),
        (replace(GOOD, errors=3, problems=(PROBLEM,)), "fail", "3 errors at 1,000 requests/s."),
        (replace(GOOD, throughput_rps=900.0), "fail", "Only 900 of 1,000 requests/s (90.0 %) were reached."),
        (
            replace(GOOD, throughput_rps=900.0, driver_problems=(BUSY,)),
            "invalid",
            f"Only 900 of 1,000 requests/s (90.0 %), but it may be the load tool: {BUSY}",
        ),
        (replace(GOOD, throughput_rps=900.0, errors=3, driver_problems=(BUSY,)), "invalid", None),
        (
            replace(GOOD, throughput_rps=900.0, errors=3, bad_statuses=3, driver_problems=(BUSY,)),
            "fail",
            "3 errors at 1,000 requests/s.",
        ),
        (replace(GOOD, driver_problems=(BUSY,)), "pass", None),
        (replace(GOOD, problems=(PROBLEM,)), "invalid", PROBLEM),
        (replace(GOOD, throughput_rps=None), "invalid", "The load tool reported no throughput."),
    ],
)
def test_a_trial_passes_without_errors_at_its_rate_within_the_objective(
    figures: TrialFigures, result: str, reason: str | None
) -> None:
    found = judge_trial(figures)
    assert found.result == result
    assert found.can_repeat
    if reason is not None:
        assert found.reason == reason


def test_a_figure_that_the_tool_never_reports_makes_every_further_trial_useless() -> None:
    text = "The load tool does not report latency p99; choose another objective."
    assert judge_trial(replace(GOOD, latency_ms=None)) == Judgement("invalid", text, can_repeat=False)
