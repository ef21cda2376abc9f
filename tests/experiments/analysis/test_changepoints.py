"""Change points: the published answers, the same answers step by step, and what counts as a jump."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from experiments.analysis.changepoints import (
    DEFAULT,
    HISTORY,
    MIN_AFTER,
    Changes,
    Settings,
    Window,
    as_otava,
    find_changes,
)
from experiments.analysis.changepoints_energy import Distances
from experiments.analysis.changepoints_jumps import Levels, any_cut_stands, mean_noise
from tests.properties import given, settings, st

HERE = Path(__file__).parent
A6: dict[str, Any] = json.loads((HERE / "worked_examples.json").read_text())["A6_changepoint"]
TIGERBEETLE: list[float] = json.loads((HERE / "tigerbeetle.json").read_text())["series"]


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def noise(n: int, seed: int = 1, level: float = 1000.0, ratio: float = 0.02) -> NDArray[np.float64]:
    return level * (1 + np.random.default_rng(seed).normal(0, ratio, n))


def steps(*parts: tuple[int, float], seed: int = 1, ratio: float = 0.02) -> NDArray[np.float64]:
    """Stretches of so many values at so high a level."""
    levels = np.concatenate([np.full(n, level) for n, level in parts])
    return levels * noise(len(levels), seed, 1.0, ratio)


@pytest.mark.parametrize("case", A6["compat"], ids=[str(case["p"]) for case in A6["compat"]])
def test_apache_otavas_own_expectations_come_out_in_compatibility_mode(case: dict[str, Any]) -> None:
    assert find_changes(TIGERBEETLE, as_otava(case["W"], case["p"], case["mag"])).indexes == case["cps"]


@pytest.mark.parametrize("case", A6["fixed"], ids=[str(case["W"]) for case in A6["fixed"]])
def test_worked_examples_without_the_stale_neighbour(case: dict[str, Any]) -> None:
    chosen = Settings(case["W"], case["p"], case["mag"], case["min_segment"], case["ddof"], strict_p=None)

    assert find_changes(TIGERBEETLE, chosen).indexes == case["cps"]


def test_the_default_settings_are_those_of_the_last_worked_example() -> None:
    case = A6["fixed"][-1]

    assert find_changes(TIGERBEETLE).indexes == case["cps"]
    assert (DEFAULT.window, DEFAULT.p, DEFAULT.min_magnitude_ratio) == (case["W"], case["p"], case["mag"])


def test_the_first_cut_of_the_small_example_and_its_q() -> None:
    small = A6["small"]
    cut = Distances(np.array(small["x"])).best_cut(0, len(small["x"]), 1)

    assert (cut.index, round(cut.q, 4)) == (small["first_split"], small["Q"])
    assert find_changes(small["x"], as_otava(50, 0.01)).indexes == small["cps_ttest_p01"]


def q_by_definition(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    m, n = len(x), len(y)
    between = np.abs(x[:, None] - y).sum()
    within_x = np.abs(x[:, None] - x).sum() / 2 / (m - 1) if m > 1 else 0.0
    within_y = np.abs(y[:, None] - y).sum() / 2 / (n - 1) if n > 1 else 0.0
    return float(2 / (m + n) * (between - n * within_x - m * within_y))


@pytest.mark.parametrize("least", [1, 4])
def test_the_best_cut_is_the_highest_q_of_the_definition(least: int) -> None:
    x = noise(23, seed=4)
    pairs = [
        (q_by_definition(x[5:cut], x[cut:end]), cut) for cut in range(5 + least, 23) for end in range(cut + least, 24)
    ]

    found = Distances(x).best_cut(5, 23, least)

    assert found.index == max(pairs)[1]
    assert found.q == pytest.approx(max(pairs)[0])


@pytest.mark.parametrize("n, cut", [(10, 4), (20, 1), (30, 29)])
def test_p_is_students(n: int, cut: int) -> None:
    x = noise(n, seed=n)
    expected = stats.ttest_ind(x[:cut], x[cut:]).pvalue if cut > 1 and n - cut > 1 else None

    jump = Levels(x, ddof=1).jump(0, cut, n)

    assert [jump.mean_before, jump.mean_after] == pytest.approx([x[:cut].mean(), x[cut:].mean()])
    if expected is not None:
        assert jump.p == pytest.approx(expected)


@pytest.mark.parametrize("least, ddof", [(1, 0), (1, 1), (4, 1)])
def test_windows_are_passed_over_only_when_no_cut_stands(least: int, ddof: int) -> None:
    rows = np.stack([noise(20, seed) for seed in range(200)])
    limit = 0.05
    expected = [min(Levels(row, ddof).jump(0, cut, 20).p for cut in range(least, 21 - least)) <= limit for row in rows]

    assert any_cut_stands(rows, limit, least, ddof).tolist() == expected
    assert len(set(expected)) == 2


def added_one_by_one(values: NDArray[np.float64], start: int, chosen: Settings) -> Changes:
    found = find_changes(values[:start], chosen)
    for length in range(start + 1, len(values) + 1):
        found = find_changes(values[:length], chosen, known=found.windows, unchanged=length - 1)
    return found


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    parts=st.lists(st.tuples(st.integers(1, 90), st.sampled_from([1000.0, 1050.0, 900.0])), min_size=1, max_size=5),
    chosen=st.sampled_from([as_otava(), DEFAULT, HISTORY]),
)
def test_values_added_one_by_one_give_the_whole_answer(
    seed: int, parts: list[tuple[int, float]], chosen: Settings
) -> None:
    values = steps(*parts, seed=seed)

    assert added_one_by_one(values, max(1, len(values) - 60), chosen) == find_changes(values, chosen)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), place=st.integers(0, 299), value=st.sampled_from([1000.0, 800.0, 1e6]))
def test_a_value_in_the_middle_gives_the_whole_answer_too(seed: int, place: int, value: float) -> None:
    before = steps((120, 1000.0), (100, 950.0), (80, 1010.0), seed=seed)
    known = find_changes(before).windows
    after = np.insert(before, place, value)

    assert find_changes(after, known=known, unchanged=place) == find_changes(after)


def test_windows_that_lie_within_what_is_unchanged_are_not_computed_again() -> None:
    values = noise(500)
    marked = tuple(Window(window.start, ()) for window in find_changes(values).windows)
    marked = (Window(0, (17,)), *marked[1:])  # what no computation would give

    assert find_changes(values, known=marked, unchanged=500).windows[0].cuts == (17,)
    assert find_changes(values, known=marked, unchanged=49).windows == find_changes(values).windows


@pytest.mark.parametrize("after", range(1, 8))
def test_a_jump_is_suspected_with_few_values_behind_it_and_then_confirmed(after: int) -> None:
    found = find_changes(steps((30, 1000.0), (after, 900.0), ratio=0.01))

    if after < MIN_AFTER:
        assert found.indexes == []
        assert found.suspected is not None
        assert found.suspected.index == 30
    else:
        assert found.indexes == [30]
        assert found.suspected is None


def test_a_jump_says_how_large_it_is_and_from_how_many_values() -> None:
    (jump,) = find_changes(steps((20, 1000.0), (10, 900.0), ratio=0.005)).jumps

    assert (jump.n_before, jump.n_after) == (20, 10)
    assert jump.change_ratio == pytest.approx(-0.1, abs=0.01)
    assert jump.p < 1e-9


def test_a_certain_change_that_is_too_small_to_matter_is_none() -> None:
    values = steps((40, 1000.0), (40, 1010.0), ratio=0.001)

    assert find_changes(values).indexes == []
    assert find_changes(values, Settings(min_magnitude_ratio=0.005)).indexes == [40]


def test_a_series_that_wanders_is_held_to_the_stricter_limit() -> None:
    source = np.random.default_rng(3)
    values = [0.0]
    for _ in range(400):
        values.append(0.8 * values[-1] + source.normal(0, 0.02))
    wandering = 1000 * (1 + np.array(values))

    found = find_changes(wandering)

    assert found.autocorrelation > 0.2
    assert found.p_limit == DEFAULT.strict_p
    assert len(found.jumps) <= len(find_changes(wandering, Settings(strict_p=None)).jumps)


def test_jumps_themselves_are_no_autocorrelation() -> None:
    found = find_changes(steps((50, 1000.0), (50, 700.0), (50, 1000.0)))

    assert found.indexes == [50, 100]
    assert found.p_limit == DEFAULT.p


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [1.0, 2.0],
        [5.0] * 60,
        [0.1] * 30 + [0.1] * 30,
        [0.0] * 40,
        [12.3] * 25 + [12.3 * (1 + 1e-15)] * 25,
    ],
    ids=["none", "one", "two", "constant", "a constant that is not exact", "zero", "rounding"],
)
def test_nothing_is_found_where_nothing_changes(values: list[float]) -> None:
    found = find_changes(values)

    assert (found.indexes, found.suspected) == ([], None)
    assert find_changes(values, as_otava()).indexes == []


def test_levels_without_any_noise_are_told_apart() -> None:
    found = find_changes([10.0] * 20 + [11.0] * 20 + [0.0] * 20)

    assert found.indexes == [20, 40]
    assert [jump.p for jump in found.jumps] == [0.0, 0.0]
    assert find_changes([0.0] * 20 + [5.0] * 20).jumps[0].change_ratio == np.inf


def test_one_outlier_is_no_change() -> None:
    values = noise(60, ratio=0.01)
    values[30] *= 0.6

    assert find_changes(values).indexes == []


def test_a_history_is_confirmed_with_five_values_of_the_new_level() -> None:
    values = np.concatenate([noise(30, ratio=0.002), noise(5, seed=2, level=900.0, ratio=0.002)])

    four, five = find_changes(values[:-1], HISTORY), find_changes(values, HISTORY)

    assert four.indexes in ([], [29])  # with the value before it there are five behind the cut
    assert five.indexes == [30]
    assert find_changes(values[:-2], HISTORY).suspected is not None
    assert find_changes(values[:-2], HISTORY).indexes == []


def test_of_a_short_history_more_is_asked() -> None:
    limits = [find_changes(noise(n), HISTORY).p_limit for n in (10, 25, 50, 200)]

    assert limits == pytest.approx([HISTORY.p * (n / 50) ** 3 for n in (10, 25, 50, 50)])


@pytest.mark.parametrize("likeness, n", [(0.3, 5), (0.3, 40), (0.8, 12), (0.5, 1)])
def test_the_noise_of_a_mean_is_that_of_a_wandering_process(likeness: float, n: int) -> None:
    place = np.arange(n)
    covariances = likeness ** np.abs(place[:, None] - place)

    assert mean_noise(likeness, n) == pytest.approx(covariances.sum() / n)


def test_a_history_that_wanders_is_held_to_what_its_likeness_makes_of_its_noise() -> None:
    source, alarms = np.random.default_rng(3), {"learns": 0, "does not": 0}
    for _ in range(60):
        values = [0.0]
        for _ in range(99):
            values.append(0.6 * values[-1] + source.normal(0, 0.016))
        found = 1000 * (1 + np.array(values))
        alarms["learns"] += bool(find_changes(found, HISTORY).indexes)
        alarms["does not"] += bool(find_changes(found, Settings(p=HISTORY.p, min_segment=5, strict_p=None)).indexes)

    assert alarms["learns"] < 0.25 * alarms["does not"]


def test_noise_below_the_floor_is_taken_for_the_floor() -> None:
    values = steps((40, 1000.0), (40, 1030.0), ratio=0.0005)

    assert find_changes(values, HISTORY).indexes == [40]
    assert find_changes(values, Settings(p=HISTORY.p, strict_p=None, learns=True, noise_floor_ratio=0.1)).indexes == []
