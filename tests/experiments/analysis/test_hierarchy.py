"""Repetitions inside repetitions, against the published example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analysis.hierarchy import best_repetitions, hierarchy_of

A3: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A3_kalibera"]


def test_the_published_example_comes_out_to_the_printed_digit() -> None:
    found = hierarchy_of(A3["y"])
    assert found.mean == A3["mean"]
    assert found.s2 == pytest.approx(A3["S2"], abs=5e-5)
    assert found.t2 == pytest.approx(A3["T2"], abs=5e-5)
    assert found.half_width == pytest.approx(A3["ci95_half"], abs=5e-4)
    assert found.counts == (2, 2, 3)


def test_a_level_that_adds_nothing_has_no_share_of_the_noise() -> None:
    shares = hierarchy_of(A3["y"]).noise_shares
    assert shares[1] == 0.0
    assert sum(shares) == pytest.approx(1.0)
    assert hierarchy_of([[1.0, 1.0], [1.0, 1.0]]).noise_shares == (0.0, 0.0)


def test_the_interval_of_one_level_is_students() -> None:
    values = [5.0, 6.0, 7.0, 9.0]
    found = hierarchy_of(values)
    assert found.half_width == pytest.approx(3.182446 * np.std(values, ddof=1) / 2, rel=1e-6)


def test_the_levels_noise_is_recovered_from_made_up_data() -> None:
    rng = np.random.default_rng(1)
    runs = rng.normal(100, 2.0, (400, 1)) + rng.normal(0, 5.0, (400, 10))
    found = hierarchy_of(runs.tolist())
    assert found.t2[0] == pytest.approx(25, rel=0.1)
    assert found.t2[1] == pytest.approx(4, rel=0.3)


@pytest.mark.parametrize(
    ("t2", "costs", "counts"),
    [
        ((4.0, 1.0), (1.0, 1.0), (2,)),
        ((4.0, 1.0), (1.0, 9.0), (6,)),
        ((1.0, 4.0), (1.0, 1.0), (1,)),
        ((5.0, 1.0), (1.0, 1.0), (3,)),
        ((0.0, 1.0), (1.0, 9.0), (1,)),
        ((1.0, 0.0), (1.0, 9.0), (0,)),
        ((9.0, 1.0, 4.0), (1.0, 4.0, 16.0), (6, 1)),
    ],
    ids=["equal cost", "dear restart", "quiet inside", "rounded up", "no noise inside", "only inside", "three levels"],
)
def test_repetitions_go_where_noise_per_cost_is(
    t2: tuple[float, ...], costs: tuple[float, ...], counts: tuple[int, ...]
) -> None:
    assert best_repetitions(t2, costs) == counts


@pytest.mark.parametrize("values", [[], [1.0], [[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 2.0], [1.0]]])
def test_a_level_without_two_equal_repetitions_is_refused(values: list[Any]) -> None:
    with pytest.raises(ValueError, match="every"):
        hierarchy_of(values)


def test_a_cost_for_every_level_is_needed() -> None:
    with pytest.raises(ValueError, match="positive cost"):
        best_repetitions((1.0, 1.0), (1.0,))
