"""What profiling costs, from pairs of runs."""

from __future__ import annotations

import pytest

from experiments.analysis.profiling_cost import cost_of_profiling


@pytest.mark.parametrize(
    "profiled, higher, change_pct, distorted, certain",
    [
        ((100.0, 104.0, 97.0, 100.0), True, 0.22, False, False),
        ((99.0, 99.1, 98.9, 99.0), True, -1.0, False, True),
        ((95.0, 95.1, 94.9, 95.0), True, -5.0, True, True),
        ((105.0, 105.1, 104.9, 105.0), True, 5.0, False, True),
        ((105.0, 105.1, 104.9, 105.0), False, 5.0, True, True),
    ],
)
def test_more_than_two_per_cent_for_the_worse_distorts(
    profiled: tuple[float, ...], higher: bool, change_pct: float, distorted: bool, certain: bool
) -> None:
    cost = cost_of_profiling("a figure", (100.0,) * 4, profiled, higher_is_better=higher)
    assert cost.change_pct == pytest.approx(change_pct, abs=0.05)
    assert cost.ci95_pct is not None
    assert cost.change_pct is not None
    assert cost.ci95_pct[0] < cost.change_pct < cost.ci95_pct[1]
    assert (cost.is_distorted, cost.is_certain) == (distorted, certain)


def test_two_pairs_have_no_interval_and_none_has_no_answer() -> None:
    two = cost_of_profiling("x", (10.0, 10.0), (5.0, 5.0), higher_is_better=True)
    assert (two.n, two.ci95_pct, two.is_distorted, two.is_certain) == (2, None, True, False)
    assert cost_of_profiling("x", (), (), higher_is_better=True).is_distorted is None


@pytest.mark.parametrize("plain, profiled", [((1.0,), ()), ((0.0,), (1.0,)), ((1.0,), (-1.0,))])
def test_figures_that_make_no_pairs_are_refused(plain: tuple[float, ...], profiled: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"twin|above 0"):
        cost_of_profiling("x", plain, profiled, higher_is_better=True)
