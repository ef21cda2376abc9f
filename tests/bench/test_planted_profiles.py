"""The simulation of planted functions finds what it plants, and ends when its time is over."""

from __future__ import annotations

from bench.planted_profiles import row, simulated


def test_a_planted_function_is_found_first_and_none_where_nothing_was_planted() -> None:
    planted = simulated(5, 6, 8, 3000, seed=1, ended=lambda: False)
    assert (planted.experiments, planted.found, planted.first) == (6, 6, 6)
    nothing = simulated(0, 6, 8, 3000, seed=1, ended=lambda: False)
    assert (nothing.experiments, nothing.found, nothing.false) == (6, 0, 0)


def test_it_ends_when_its_time_is_over() -> None:
    nothing = simulated(10, 6, 8, 3000, seed=1, ended=lambda: True)
    assert nothing.experiments == 0
    assert "nan" in row(10, nothing)
