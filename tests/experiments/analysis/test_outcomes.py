"""What a verdict is called, and why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.analysis.outcomes import WORDS, why_undecided
from experiments.models.experiments import shown_outcome
from frontend.shared.badges import BADGES


@pytest.mark.parametrize(
    ("counted", "finished", "live", "failed", "zeros", "why"),
    [
        ((2, 2), (2, 2), 4, 0, 0, "running"),
        ((3, 3), (3, 3), 0, 0, 0, "too_few"),
        ((5, 0), (5, 5), 0, 5, 0, "fails"),
        ((1, 0), (1, 1), 0, 1, 0, "fails"),
        ((5, 0), (5, 5), 3, 5, 0, "running"),
        ((0, 5), (5, 5), 0, 0, 0, "baseline"),
        ((4, 5), (6, 6), 0, 0, 0, "baseline"),
        ((5, 2), (5, 5), 0, 2, 0, "candidate"),
        ((5, 0), (5, 5), 0, 0, 5, "zero"),
        ((0, 5), (5, 5), 0, 0, 5, "zero"),
        ((2, 2), (2, 2), 0, 0, 0, "too_few"),
        ((0, 0), (0, 0), 0, 0, 0, "too_few"),
    ],
)
def test_each_reason_for_no_verdict_has_its_name(
    counted: tuple[int, int], finished: tuple[int, int], live: int, failed: int, zeros: int, why: str
) -> None:
    assert why_undecided(counted=counted, finished=finished, live=live, failed=failed, zeros=zeros) == why


@pytest.mark.parametrize(
    ("outcome", "numbers", "shown"),
    [
        ("worse", {"family": {"stands": False}}, "not_held"),
        ("worse", {"family": {"stands": True}}, "worse"),
        ("worse", {"family": None}, "worse"),
        ("no_practical_difference", {"family": {"stands": False}}, "no_practical_difference"),
        ("invalid", {"undecided": "fails"}, "fails"),
        ("invalid", {}, "invalid"),
    ],
)
def test_a_difference_that_does_not_hold_is_not_called_one(outcome: str, numbers: dict[str, Any], shown: str) -> None:
    assert shown_outcome(outcome, numbers) == shown


def test_badges_and_texts_have_one_word_for_each_outcome() -> None:
    assert {name: badge.text.lower() for name, badge in BADGES["verdict"].items()} == {
        name: word.lower() for name, word in WORDS.items()
    }
