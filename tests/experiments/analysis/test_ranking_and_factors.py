"""The order of several arms and the effects of two factors, against planted ones."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from experiments.analysis.ranking import rank
from experiments.analysis.two_factors import effects
from experiments.analysis.verdict import Arms

LEVELS = (3, 3)


def arm(level: float, *, n: int = 6, noise: float = 0.005, seed: int = 1) -> dict[int, float]:
    draw = random.Random(f"{seed}/{level}")
    return {block: level * math.exp(draw.gauss(0, noise)) for block in range(n)}


def planted(
    *, n: int = 6, both: float = 1.0, noise: float = 0.005, seed: int = 1
) -> dict[tuple[int, int], dict[int, float]]:
    """Rows double the figure and triple it, columns add 10 % and 30 %; the last pair has `both` on top."""
    row, column = (1.0, 2.0, 3.0), (1.0, 1.1, 1.3)
    draw = random.Random(seed)
    return {
        (a, b): {
            k: 1000 * row[a] * column[b] * (both if (a, b) == (2, 2) else 1) * math.exp(draw.gauss(0, noise))
            for k in range(n)
        }
        for a, b in product(range(3), range(3))
    }


@pytest.mark.parametrize(("higher", "order"), [(True, [2, 1, 0]), (False, [0, 1, 2])])
def test_the_best_comes_first_whichever_way_is_better(higher: bool, order: list[int]) -> None:
    found = rank([arm(100), arm(110), arm(130)], higher_is_better=higher, design="blocked")
    assert [one.arm for one in found] == order
    assert [one.behind for one in found] == [False, True, True]
    assert found[0].change_pct == 0
    assert found[1].ci95_pct is not None
    assert found[1].ci95_pct[0] < found[1].change_pct < found[1].ci95_pct[1]


def test_what_cannot_be_told_from_the_best_is_not_behind() -> None:
    found = rank([arm(100), arm(100.1, seed=3), arm(80)], higher_is_better=True, design="blocked")
    assert {one.arm: one.behind for one in found} == {0: False, 1: False, 2: True}


def test_fewer_than_five_repetitions_tell_none_apart_and_no_figure_is_not_ranked() -> None:
    found = rank([arm(100, n=4), arm(200, n=4), {}, arm(50, n=2)], higher_is_better=True, design="blocked")
    assert [one.arm for one in found] == [1, 0, 3]
    assert [one.behind for one in found] == [False, None, None]
    assert [one.ci95_pct is None for one in found] == [True, False, True]


def test_alike_arms_are_rarely_told_apart_though_the_best_was_chosen_by_its_figures() -> None:
    wrong = 0
    for trial in range(200):
        draw = random.Random(trial)
        arms = [{block: 100 * math.exp(draw.gauss(0, 0.02)) for block in range(6)} for _ in range(6)]
        wrong += any(one.behind for one in rank(arms, higher_is_better=True, design="blocked"))
    assert wrong <= 20  # 5 % of 200 are 10; more than 20 happen once in a thousand


def test_a_figure_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        rank([{0: 0.0}], higher_is_better=True, design="blocked")
    with pytest.raises(ValueError, match="positive"):
        effects({(0, 0): {0: -1.0}}, (2, 2), (0, 0), "blocked")


@pytest.mark.parametrize("design", ["blocked", "independent"])
def test_effects_are_those_that_were_planted(design: Arms) -> None:
    found = effects(planted(), LEVELS, (0, 0), design)
    assert found is not None
    assert [one.at for one in found.first] == [(1,), (2,)]
    assert [one.change_pct for one in found.first] == pytest.approx([100, 200], abs=2)
    assert [one.change_pct for one in found.second] == pytest.approx([10, 30], abs=1)
    assert all(one.stands for one in (*found.first, *found.second))
    assert not any(one.stands for one in found.together)
    assert found.n == 6


def test_what_both_do_together_is_told_from_what_each_does_alone() -> None:
    found = effects(planted(both=0.8), LEVELS, (0, 0), "blocked")
    assert found is not None
    together = {one.at: one for one in found.together}
    assert set(together) == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert together[2, 2].change_pct == pytest.approx(-20, abs=2)
    assert [at for at, one in together.items() if one.stands] == [(2, 2)]


def test_the_base_may_be_any_pair_of_levels() -> None:
    found = effects(planted(noise=0), LEVELS, (1, 2), "blocked")
    assert found is not None
    assert {one.at[0]: round(one.change_pct, 6) for one in found.first} == {0: -50, 2: 50}
    assert {one.at[0]: round(one.change_pct, 6) for one in found.second} == {
        0: round(100 * (1 / 1.3 - 1), 6),
        1: round(100 * (1.1 / 1.3 - 1), 6),
    }


def test_few_repetitions_have_intervals_but_nothing_stands_and_gaps_have_no_effects() -> None:
    few = effects(planted(n=3), LEVELS, (0, 0), "blocked")
    assert few is not None
    assert {one.stands for one in (*few.first, *few.second, *few.together)} == {None}
    cells = planted()
    del cells[1, 1]
    assert effects(cells, LEVELS, (0, 0), "blocked") is None
    shifted = planted()
    shifted[1, 1] = {block + 4: value for block, value in shifted[1, 1].items()}  # two blocks that all pairs have
    assert effects(shifted, LEVELS, (0, 0), "blocked") is None
    assert effects(shifted, LEVELS, (0, 0), "independent") is not None


def test_intervals_hold_the_planted_effect_as_often_as_they_say() -> None:
    held = 0
    for seed in range(200):
        found = effects(planted(seed=seed, noise=0.05), LEVELS, (0, 0), "blocked")
        assert found is not None
        low, high = found.first[0].ci95_pct
        held += low <= 100 <= high
    assert 180 <= held <= 199
