"""The search for the sustainable rate: worked example, hiccups, both ends, invalid trials, the simulated table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.simulations.search import searches
from experiments.analysis.search import (
    MOST_INVALID,
    MOST_TRIALS,
    Decision,
    Found,
    NotFound,
    SearchSettings,
    Trial,
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


def test_the_worked_example_is_found_to_its_width() -> None:
    found, trials = run(SearchSettings(A16["lo"], A16["hi"], A16["w"]), A16["capacity"])
    assert isinstance(found, Found)
    assert found.low_rps <= A16["capacity"] <= found.high_rps
    assert (found.high_rps - found.low_rps) / found.high_rps <= A16["w"]
    assert found.trials == len(trials) <= 20


@pytest.mark.parametrize("capacity", [3.0, 900.0, 1000.0, 5500.0, 9999.0, 10_001.0, 70_000.0])
def test_the_limit_is_found_below_inside_and_above_the_start(capacity: float) -> None:
    found, trials = run(SearchSettings(1000, 10_000, 0.02), capacity)
    assert isinstance(found, Found)
    assert found.low_rps <= capacity < found.high_rps
    assert (found.high_rps - found.low_rps) / found.high_rps <= 0.02
    assert found.trials == len(trials) <= 25
    assert not found.is_wider


def test_a_server_that_sustains_nothing_ends_the_search_with_a_sentence() -> None:
    step, _ = run(SearchSettings(100, 200), 0.0)
    assert isinstance(step, NotFound)
    assert "there is no smaller rate" in step.sentence


def test_the_search_never_offers_more_than_it_may() -> None:
    step, trials = run(SearchSettings(100, 200, largest_rps=1000), 1e9)
    assert isinstance(step, NotFound)
    assert "may not offer more" in step.sentence
    assert max(trial.rate_rps for trial in trials) <= 1000


def test_a_first_rate_that_fails_is_tried_again_at_once() -> None:
    again = decide(SearchSettings(1000, 2000), [Trial(1000, "fail")])
    assert again == TryRate(1000, "bracket", None, 1000)


@pytest.mark.parametrize("hiccup", range(12))
def test_one_hiccup_at_any_time_leaves_the_answer_where_it_is(hiccup: int) -> None:
    found, _ = run(SearchSettings(20_000, 200_000, 0.02), lambda count: 0.0 if count == hiccup else 100_000.0)
    assert isinstance(found, Found)
    assert found.low_rps <= 100_000 <= found.high_rps


def test_both_ends_of_the_answer_are_borne_out_by_two_trials_near_them() -> None:
    found, trials = run(SearchSettings(20_000, 200_000, 0.02), 100_000.0)
    assert isinstance(found, Found)
    near = [trial for trial in trials if found.low_rps * 0.98 <= trial.rate_rps <= found.high_rps * 1.02]
    assert sum(trial.result == "pass" for trial in near) >= 2
    assert sum(trial.result == "fail" for trial in near) >= 2


def test_near_the_answer_both_sides_are_tried_in_turn() -> None:
    _, trials = run(SearchSettings(1000, 10_000, 0.02), 5500.0)
    steps = [decide(SearchSettings(1000, 10_000, 0.02), trials[:count]) for count in range(len(trials))]
    phases = [step.phase for step in steps if isinstance(step, TryRate)]
    assert phases[:2] == ["bracket", "bracket"]
    assert {"bisect", "vote"} <= set(phases)
    assert phases.index("bisect") < phases.index("vote")


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
        step = decide(settings, trials[:count])
        assert isinstance(step, TryRate)
        assert step.rate_rps == trials[count].rate_rps


def test_trials_of_an_earlier_version_are_gone_on_from() -> None:
    trials = [Trial(1000, "pass"), Trial(20_000, "fail"), Trial(4472, "pass"), Trial(9457, "fail"), Trial(6503, "pass")]
    step = decide(SearchSettings(1000, 20_000), trials)
    assert isinstance(step, TryRate)
    assert 6503 < step.rate_rps < 9457


def test_the_expected_trials_are_those_of_the_simulated_table() -> None:
    assert expected_trials(20_000, 200_000, 0.02) == 20
    assert expected_trials(1000, 1010, 0.02) == 14


def test_a_trial_at_no_rate_is_refused() -> None:
    with pytest.raises(ValueError):
        decide(SearchSettings(1000, 2000), [Trial(0, "pass")])


def test_a_server_that_cannot_make_up_its_mind_ends_the_search_with_a_wider_interval() -> None:
    noise = np.random.default_rng(1).normal(0, 0.02, 100)
    found, trials = run(SearchSettings(1000, 2000, 0.001), lambda count: 1500 * float(np.exp(noise[count])))
    assert isinstance(found, Found)
    assert found.is_wider
    assert len(trials) == MOST_TRIALS


def test_results_at_random_end_the_search_without_an_answer_or_with_a_wide_one() -> None:
    found, trials = run(SearchSettings(1000, 100_000, 0.02), lambda count: 0.0 if count % 2 else 1e9)
    assert isinstance(found, NotFound | Found)
    assert len(trials) <= 2 * MOST_TRIALS


@pytest.mark.parametrize(("low", "high", "width"), [(0, 10, 0.02), (10, 10, 0.02), (10, 20, 0), (10, 20, 0.9)])
def test_settings_that_make_no_search_are_refused(low: float, high: float, width: float) -> None:
    with pytest.raises(ValueError):
        SearchSettings(low, high, width)


def test_simulated_searches_hold_what_the_documentation_says() -> None:
    missed = [aim.row() for aim in searches(np.random.default_rng(1), 40) if not aim.holds]
    assert not missed
