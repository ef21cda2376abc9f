from __future__ import annotations

import numpy as np
import pytest

from experiments.analysis.host_canaries import MIN_EARLIER, MOST_EARLIER, canary_change, canary_sentence

STEADY = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2]


@pytest.mark.parametrize(
    ("now", "higher_is_better", "slower", "faster"),
    [(100.3, True, False, False), (80, True, True, False), (80, False, False, True), (125, True, False, True)],
)
def test_a_check_beyond_what_the_host_shows_by_itself_is_a_change(
    now: float, higher_is_better: bool, slower: bool, faster: bool
) -> None:
    change = canary_change(STEADY, now, higher_is_better=higher_is_better)
    assert change is not None
    assert (change.slower, change.faster) == (slower, faster)
    assert change.ci95[0] < change.ratio < change.ci95[1]


def test_a_host_that_differs_much_by_itself_is_not_called_slower() -> None:
    change = canary_change([60, 140, 90, 120, 75, 130], 80, higher_is_better=True)
    assert change is not None
    assert not change.slower


def test_a_certain_change_that_is_tiny_is_none() -> None:
    change = canary_change([100, 100.01, 99.99, 100, 100.01], 98.5, higher_is_better=True)
    assert change is not None
    assert change.ci95[1] < 1
    assert not change.slower


@pytest.mark.parametrize(("earlier", "now"), [(STEADY[: MIN_EARLIER - 1], 80), (STEADY, 0), (STEADY, float("nan"))])
def test_too_little_to_go_by_gives_no_answer(earlier: list[float], now: float) -> None:
    assert canary_change(earlier, now, higher_is_better=True) is None


def test_what_the_host_was_long_ago_does_not_count() -> None:
    change = canary_change([1000.0] * 50 + STEADY * 5, 100, higher_is_better=True)
    assert change is not None
    assert (change.earlier, change.slower) == (MOST_EARLIER, False)


def test_a_host_that_stays_as_it_is_is_called_changed_about_once_in_twenty_times() -> None:
    random = np.random.default_rng(7)
    drawn = np.exp(random.normal(0, 0.2, size=(4000, 11)))
    changes = [canary_change(list(row[:10]), float(row[10]), higher_is_better=True) for row in drawn]
    called = sum(change is not None and (change.slower or change.faster) for change in changes) / len(changes)
    assert 0.04 < called < 0.06


def test_the_sentence_names_the_host_the_check_and_the_interval() -> None:
    change = canary_change(STEADY, 80, higher_is_better=True)
    assert change is not None
    said = canary_sentence("sut-1", "CPU loop", change)
    assert said.startswith("sut-1 itself got slower: its CPU loop is \N{MINUS SIGN}20.0 % [")
    still = canary_change(STEADY, 100, higher_is_better=True)
    assert still is not None
    assert canary_sentence("sut-1", "CPU loop", still) == ""
