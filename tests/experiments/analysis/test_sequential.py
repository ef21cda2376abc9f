"""Looks and their alpha, precision, and what does not count as a look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.analysis import wording
from experiments.analysis.sequential import LOOK_ALPHA, LOOKS, StopRule, standing_of
from experiments.analysis.verdict import judge

CLEAR = StopRule("until_clear", 20)
BASE = [1000.0 * (1 + 0.01 * math.sin(7 * i)) for i in range(40)]


def arms(n: int, factor: float, noise: float = 0.004) -> tuple[list[float | None], list[float | None]]:
    other = [x * factor * (1 + noise * math.cos(11 * i)) for i, x in enumerate(BASE[:n])]
    return list(BASE[:n]), list(other)


def standing(rule: StopRule, a: list[float | None], b: list[float | None], *, spent: bool = False):  # type: ignore[no-untyped-def]
    return standing_of(rule, a, b, higher_is_better=True, margin_ratio=0.03, spent=spent)


@pytest.mark.parametrize(
    ("cap", "looks"), [(20, (5, 8, 12, 20)), (10, (5, 8, 10)), (8, (5, 8)), (5, (5,)), (6, (5, 6))]
)
def test_the_cap_is_the_last_look(cap: int, looks: tuple[int, ...]) -> None:
    assert StopRule("until_clear", cap).looks == looks
    assert LOOKS[-1] == 20


def test_a_clear_difference_is_settled_at_the_first_look_at_its_alpha() -> None:
    found = standing(CLEAR, *arms(5, 1.2))
    assert (found.settled, len(found.looks), found.verdict.outcome) == (True, 1, "better")
    assert found.verdict.alpha == LOOK_ALPHA
    assert "(98.4 %), n=5+5; one of several looks, at α 0.016" in wording.headline(found.verdict)
    assert found.verdict.deciding_pct is not None
    assert found.verdict.ci95_pct is not None
    assert found.verdict.deciding_pct[0] < found.verdict.ci95_pct[0]


def test_later_blocks_do_not_change_what_was_settled() -> None:
    a, b = arms(12, 1.2)
    b[5:] = [500.0] * 7
    assert standing(CLEAR, a, b).verdict == standing(CLEAR, a[:5], b[:5]).verdict


def test_blocks_between_two_looks_are_not_looked_at() -> None:
    a, b = arms(7, 1.01, noise=0.05)
    found = standing(CLEAR, a, b)
    assert (len(found.looks), found.verdict.n_a, found.next_blocks) == (1, 5, 8)
    assert found.verdict.outcome == "inconclusive"


@pytest.mark.parametrize(("n", "following"), [(0, 5), (4, 5), (5, 8), (8, 12), (12, 20)])
def test_an_unclear_pair_asks_for_the_blocks_of_the_next_look(n: int, following: int) -> None:
    assert standing(CLEAR, *arms(n, 1.02, noise=0.05)).next_blocks == following


def test_a_missing_repetition_takes_its_block_out() -> None:
    a, b = arms(6, 1.2)
    b[2] = None
    found = standing(CLEAR, a, b)
    assert (found.blocks, found.settled) == (5, True)


def test_when_no_block_follows_the_rest_is_looked_at_too() -> None:
    a, b = arms(7, 1.02, noise=0.05)
    assert standing(CLEAR, a, b).verdict.n_a == 5
    last = standing(CLEAR, a, b, spent=True)
    assert [(look.blocks, look.planned) for look in last.looks] == [(5, True), (7, True)]
    assert last.verdict.n_a == 7


def test_blocks_added_by_hand_behind_the_last_look_are_an_unplanned_look() -> None:
    found = standing(CLEAR, *arms(25, 1.01, noise=0.08), spent=True)
    assert [(look.blocks, look.planned) for look in found.looks][-1] == (25, False)


def test_precision_needs_eight_blocks_and_two_more_behind_the_stop() -> None:
    rule = StopRule("until_precise", 30, 0.01)
    assert [standing(rule, *arms(n, 1.0)).next_blocks for n in (3, 7, 8, 9, 10)] == [8, 8, 10, 10, None]


def test_precision_goes_on_block_by_block_until_the_interval_is_narrow() -> None:
    rule = StopRule("until_precise", 30, 0.01)
    rng = np.random.default_rng(3)
    a, b = (list(np.exp(rng.normal(0, 0.012, 30))) for _ in range(2))
    first = next(n for n in range(8, 31) if _half(a[:n], b[:n]) <= math.log1p(0.01))
    found = standing(rule, list(a[: first + 1]), list(b[: first + 1]))
    assert (found.next_blocks, found.looks[-1].blocks) == (first + 2, first)
    assert standing(rule, list(a[: first - 1]), list(b[: first - 1])).next_blocks == max(first, 8)
    assert standing(rule, list(a[: first + 2]), list(b[: first + 2])).settled


def test_only_the_newest_looks_of_many_are_kept_with_their_number() -> None:
    rule = StopRule("until_precise", 40, 0.0001)
    found = standing(rule, *arms(30, 1.0))
    assert [(look.number, look.blocks) for look in found.looks] == [(n - 7, n) for n in range(25, 31)]
    for look in found.looks:
        low, high = (math.log1p(bound / 100) for bound in look.verdict.ci95_pct or (0.0, 0.0))
        assert look.half_width_ratio == pytest.approx(math.expm1((high - low) / 2))


def _half(a: list[float], b: list[float]) -> float:
    low, high = judge(a, b, higher_is_better=True, design="blocked").ci95_pct or (0.0, 0.0)
    return (math.log1p(high / 100) - math.log1p(low / 100)) / 2


def test_a_fixed_number_is_settled_whatever_it_says() -> None:
    found = standing(StopRule(), *arms(6, 1.01, noise=0.08))
    assert (found.settled, found.looks, found.verdict.alpha) == (True, (), 0.05)


def test_the_widest_interval_in_margins_is_the_most_urgent() -> None:
    narrow, wide = standing(CLEAR, *arms(5, 1.02, noise=0.01)), standing(CLEAR, *arms(5, 1.02, noise=0.09))
    unknown = standing(CLEAR, *arms(2, 1.02))
    assert narrow.urgency < wide.urgency < unknown.urgency
