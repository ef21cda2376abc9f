"""Clocks of two variants, at the limit of two percent."""

from __future__ import annotations

import pytest

from experiments.analysis.arms import clocks_agree
from experiments.analysis.thresholds import Thresholds


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [
        ([3000.0] * 5, [3060.0] * 5, "ok"),
        ([3000.0] * 5, [3061.0] * 5, "invalid"),
        ([3000.0] * 5, [2939.0] * 5, "invalid"),
        ([3000.0, 2000.0], [2500.0], "ok"),
        ([], [3000.0], "skipped"),
        ([3000.0], [], "skipped"),
    ],
)
def test_variants_at_other_clocks_are_not_comparable(a: list[float], b: list[float], level: str) -> None:
    assert clocks_agree(a, b, names=("default", "tuned")).level == level


def test_the_sentence_names_both_clocks_and_the_limit() -> None:
    found = clocks_agree([2400.0], [2900.0], names=("default", "tuned"))
    assert found.sentence == (
        "Not comparable: the server's CPUs ran at 2,400 MHz in default and at 2,900 MHz in tuned, 20.8 % apart "
        "(limit 2.0 %), and no recipe asks for that. Fix the governor and turbo, then run again."
    )
    wide = Thresholds(frequency_between_arms_ratio=0.25)
    assert clocks_agree([2400.0], [2900.0], names=("default", "tuned"), thresholds=wide).level == "ok"
