"""The simulations are repeatable, and a figure that is too far off is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from bench.simulations.figures import Figure
from bench.simulations.verdicts import drift, looks


@pytest.mark.parametrize(
    ("ours", "trials", "holds"),
    [(0.95, 2000, True), (0.93, 2000, True), (0.89, 2000, False), (0.89, 100, True), (1.0, 2000, False)],
)
def test_a_figure_holds_within_the_error_of_both_simulations(ours: float, trials: int, holds: bool) -> None:
    assert Figure("x", ours, trials, 0.95, 0.95).holds == holds


def test_a_range_is_met_inside_it() -> None:
    assert Figure("x", 0.82, 10_000, 0.80, 0.84).holds
    assert "**no**" in Figure("x", 0.5, 10_000, 0.80, 0.84).row()


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second = (drift(np.random.default_rng(3), 200) for _ in range(2))
    assert first == second


def test_drift_deceives_a_comparison_of_groups_and_not_one_of_blocks() -> None:
    figures = {figure.what: figure.ours for figure in drift(np.random.default_rng(1), 2000)}
    assert figures["0.5% slower per run: AAABBB, Welch"] > 0.9
    assert figures["0.5% slower per run: random blocks, paired"] < 0.08


def test_many_looks_at_full_alpha_raise_more_alarms() -> None:
    strict, naive, _ = looks(np.random.default_rng(1), 4000)
    assert strict.ours < 0.065 < 0.11 < naive.ours
