"""A night is one point: an experiment's variant, or single runs within an hour on one boot."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.analysis.history_points import points_of

MINUTE = 60.0
CASES: dict[str, tuple[list[tuple[float, int]], list[int]]] = {
    "nothing": ([], []),
    "one run": ([(0, 0)], [0]),
    "single runs within an hour": ([(0, 0), (20, 0), (59, 0)], [0, 0, 0]),
    "an hour after the first a new point begins": ([(0, 0), (40, 0), (60, 0), (100, 0)], [0, 0, 1, 1]),
    "a pause of an hour": ([(0, 0), (61, 0)], [0, 1]),
    "a restart in between": ([(0, -7), (10, -7), (20, -8)], [0, 0, 1]),
    "two boots in turn": ([(0, -7), (10, -8), (20, -7), (30, -8)], [0, 1, 0, 1]),
    "a boot that nobody knows": ([(0, -7), (10, 0)], [0, 1]),
    "an experiment that takes a day": ([(0, 5), (300, 5), (1400, 5)], [0, 0, 0]),
    "two variants in turn": ([(0, 5), (10, 6), (20, 5), (30, 6)], [0, 1, 0, 1]),
    "a single run within an experiment": ([(0, 5), (10, 0), (20, 5)], [0, 1, 0]),
    "a long row without a pause": ([(30 * step, 0) for step in range(7)], [0, 0, 1, 1, 2, 2, 3]),
}


@pytest.mark.parametrize("runs, expected", CASES.values(), ids=CASES.keys())
def test_runs_are_points(runs: list[tuple[float, int]], expected: list[int]) -> None:
    at_s = np.array([minutes * MINUTE for minutes, _ in runs])

    found = points_of(at_s, np.array([key for _, key in runs], dtype=np.int64), np.arange(len(runs), dtype=float))

    assert found.point_of.tolist() == expected
    assert [place for members in found.members() for place in members.tolist()] == sorted(
        range(len(runs)), key=lambda place: (expected[place], place)
    )


def test_a_point_has_the_mean_and_the_spread_of_its_runs() -> None:
    at_s, key = np.array([0.0, 60.0, 120.0, 90_000.0]), np.zeros(4, dtype=np.int64)

    found = points_of(at_s, key, np.array([10.0, 12.0, 14.0, 20.0]))

    assert (found.value.tolist(), found.count.tolist()) == ([12.0, 20.0], [3, 1])
    assert found.spread[0] == pytest.approx(2.0)
    assert np.isnan(found.spread[1])
    assert (found.first.tolist(), found.last.tolist(), found.at_s.tolist()) == ([0, 3], [2, 3], [0.0, 90_000.0])
