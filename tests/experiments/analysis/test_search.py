"""The search for the sustainable rate: worked example, brackets, votes, invalid trials, the simulated table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.search_simulation import simulate
from experiments.analysis.search import (
    MOST_INVALID,
    Decision,
    Found,
    NotFound,
    SearchSettings,
    Trial,
    TrialResult,
    TryRate,
    decide,
    expected_trials,
)

A16: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A16_search"]


def run(settings: SearchSettings, capacity: float | Callable[[int], float]) -> tuple[Decision, list[Trial]]:
    """The whole search against a server of this capacity."""
    trials: list[Trial] = []
    while isinstance(step := decide(settings, trials), TryRate):
        limit = capacity(len(trials)) if callable(capacity) else capacity
        trials.append(Trial(step.rate_rps, "pass" if step.rate_rps <= limit else "fail"))
    return step, trials


def test_the_worked_example_to_the_printed_digit() -> None:
    found, trials = run(SearchSettings(A16["lo"], A16["hi"], A16["w"], robust=False, bracketed=True), A16["capacity"])
    assert isinstance(found, Found)
    assert [round(found.low_rps, 1), round(found.high_rps, 1)] == A16["result"]
    assert (found.trials, len(trials)) == (A16["trials"], A16["trials"])


@pytest.mark.parametrize("capacity", [3.0, 900.0, 1000.0, 5500.0, 9999.0, 10_001.0, 70_000.0])
@pytest.mark.parametrize("robust", [False, True])
def test_the_bracket_is_found_below_inside_and_above_the_start(capacity: float, robust: bool) -> None:
    found, trials = run(SearchSettings(1000, 10_000, 0.02, robust=robust), capacity)
    assert isinstance(found, Found)
    assert found.low_rps <= capacity < found.high_rps
    assert (found.high_rps - found.low_rps) / found.high_rps <= 0.02
    assert found.trials == len(trials)


def test_a_server_that_sustains_nothing_ends_the_search_with_a_sentence() -> None:
    step, _ = run(SearchSettings(100, 200), 0.0)
    assert isinstance(step, NotFound)
    assert "there is no smaller rate" in step.sentence


def test_the_search_never_offers_more_than_it_may() -> None:
    step, trials = run(SearchSettings(100, 200, largest_rps=1000), 1e9)
    assert isinstance(step, NotFound)
    assert "may not offer more" in step.sentence
    assert max(trial.rate_rps for trial in trials) <= 1000


def test_near_the_answer_one_lucky_trial_does_not_decide() -> None:
    settings = SearchSettings(1000, 1050, 0.02, bracketed=True)
    first = decide(settings, [])
    assert isinstance(first, TryRate)
    assert first.phase == "vote"
    again = decide(settings, [Trial(first.rate_rps, "pass")])
    assert isinstance(again, TryRate)
    assert again.rate_rps == first.rate_rps
    split = decide(settings, [Trial(first.rate_rps, "pass"), Trial(first.rate_rps, "fail")])
    assert isinstance(split, TryRate)
    assert split.rate_rps == first.rate_rps


def test_the_lower_bound_is_verified_and_stepped_down_when_it_does_not_hold() -> None:
    settings = SearchSettings(1000, 1015, 0.02, bracketed=True)
    first = decide(settings, [])
    assert isinstance(first, TryRate)
    assert (first.phase, first.rate_rps) == ("verify", 1000)
    lower = decide(settings, [Trial(1000, "fail"), Trial(1000, "fail")])
    assert isinstance(lower, TryRate)
    assert (lower.phase, lower.rate_rps, lower.high_rps) == ("verify", 980, 1000)
    found = decide(settings, [Trial(1000, "fail"), Trial(1000, "fail"), Trial(980, "pass"), Trial(980, "pass")])
    assert found == Found(980, 1000, 4)


def test_rates_are_multiples_of_what_the_load_tool_can_offer() -> None:
    found, trials = run(SearchSettings(100, 1000, 0.02, step_rps=16), 500.0)
    assert isinstance(found, Found)
    assert (found.low_rps, found.high_rps) == (496, 512)
    assert all(trial.rate_rps % 16 == 0 for trial in trials)


def test_an_invalid_trial_is_repeated_and_counts_neither_way() -> None:
    settings = SearchSettings(1000, 2000)
    repeated = decide(settings, [Trial(1000, "invalid")])
    assert isinstance(repeated, TryRate)
    assert repeated.rate_rps == 1000
    stopped = decide(settings, [Trial(1000, "invalid")] * MOST_INVALID)
    assert isinstance(stopped, NotFound)
    after = decide(settings, [Trial(1000, "invalid"), Trial(1000, "invalid"), Trial(1000, "pass")])
    assert isinstance(after, TryRate)
    assert after.rate_rps == 2000


def test_replaying_the_same_trials_gives_the_same_decision() -> None:
    settings = SearchSettings(1000, 20_000)
    _, trials = run(settings, lambda count: 7000 + 37 * (count % 5))
    for count in range(len(trials)):
        assert decide(settings, trials[:count]) == decide(settings, trials[:count])
        step = decide(settings, trials[:count])
        assert isinstance(step, TryRate)
        assert step.rate_rps == trials[count].rate_rps


def test_the_expected_trials_are_those_of_the_simulated_table() -> None:
    assert expected_trials(20_000, 200_000, 0.02) == 13
    assert expected_trials(1000, 1010, 0.02) == 6


def test_a_trial_that_was_never_asked_for_is_refused() -> None:
    with pytest.raises(ValueError):
        decide(SearchSettings(1000, 2000), [Trial(1500, "pass")])


def test_a_server_that_cannot_make_up_its_mind_ends_the_search() -> None:
    settings = SearchSettings(1000, 2000, 0.001)
    trials: list[Trial] = []
    source = iter(range(10_000))
    while isinstance(step := decide(settings, trials), TryRate):
        result: TrialResult = "fail" if step.phase == "verify" and next(source) % 2 == 0 else "pass"
        trials.append(Trial(step.rate_rps, result))
    assert isinstance(step, Found | NotFound)
    assert len(trials) <= 100


@pytest.mark.parametrize(("low", "high", "width"), [(0, 10, 0.02), (10, 10, 0.02), (10, 20, 0), (10, 20, 0.9)])
def test_settings_that_make_no_search_are_refused(low: float, high: float, width: float) -> None:
    with pytest.raises(ValueError):
        SearchSettings(low, high, width)


def test_the_simulated_table_holds_what_the_documentation_says() -> None:
    simple = simulate(robust=False, cov_ratio=0.02, searches=400, seed=1)
    robust = simulate(robust=True, cov_ratio=0.02, searches=400, seed=1)
    assert simple.trials == 7
    assert 12 < robust.trials < 14
    assert simple.sd_pct == pytest.approx(1.8, abs=0.2)
    assert robust.sd_pct == pytest.approx(1.35, abs=0.2)
    assert robust.bias_pct == pytest.approx(-1.8, abs=0.3)
