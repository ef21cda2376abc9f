"""Exact rank intervals and p-values adjusted for many comparisons, against published numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.families import Family, benjamini_hochberg, families_of, holm
from experiments.analysis.ranks import (
    p_of_pairs,
    p_of_two_samples,
    rank_sum_null,
    shift_of_pairs,
    shift_of_two_samples,
    signed_rank_null,
)

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())
SMALLEST = EXAMPLES["A2_mwu_min_p"]
FAMILY = EXAMPLES["A4_multiple"]


@pytest.mark.parametrize(("n", "p"), list(zip(SMALLEST["n"], SMALLEST["p"], strict=True)))
def test_the_smallest_possible_rank_p_is_the_published_one(n: int, p: float) -> None:
    assert 2 * rank_sum_null(n, n)[0] == pytest.approx(p, rel=2e-5)


def test_the_shift_of_the_published_example_comes_out() -> None:
    case = EXAMPLES["A2_hl"]
    shift = shift_of_two_samples(case["y"], case["x"])
    assert shift.estimate == pytest.approx(case["hl_x_minus_y"])
    assert shift.interval == pytest.approx(case["ci95"])
    assert shift.confidence_ratio == pytest.approx(case["achieved"], abs=5e-6)
    assert sum(rank_sum_null(10, 5)[case["U"] :]) == pytest.approx(case["p_greater"], abs=5e-5)


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (3, 5), (5, 3), (12, 20)])
def test_the_rank_sum_distribution_is_symmetric_and_whole(n_a: int, n_b: int) -> None:
    null = rank_sum_null(n_a, n_b)
    assert len(null) == n_a * n_b + 1
    assert sum(null) == pytest.approx(1.0)
    assert null == null[::-1]


def test_the_signed_rank_distribution_agrees_with_scipy() -> None:
    differences = [0.4, -0.1, 0.9, 1.3, 0.7, -0.2, 0.5]
    ranked = stats.wilcoxon(differences, method="exact")
    assert 2 * sum(signed_rank_null(7)[: int(ranked.statistic) + 1]) == pytest.approx(float(ranked.pvalue))


@pytest.mark.parametrize(("n", "known"), [(3, False), (5, False), (6, True)])
def test_pairs_need_six_for_a_95_percent_rank_interval(n: int, known: bool) -> None:
    assert (shift_of_pairs([0.1 * i for i in range(n)]).interval is not None) == known


@pytest.mark.parametrize(("n", "known"), [(3, False), (4, True)])
def test_two_samples_need_four_each_for_a_95_percent_rank_interval(n: int, known: bool) -> None:
    assert (
        shift_of_two_samples([float(i) for i in range(n)], [i + 0.5 for i in range(n)]).interval is not None
    ) == known


def test_holm_and_benjamini_hochberg_give_the_published_numbers() -> None:
    strict, loose = holm(FAMILY["p"]), benjamini_hochberg(FAMILY["p"])
    assert sum(strict.rejected()) == FAMILY["holm_reject"]
    assert sum(loose.rejected()) == FAMILY["bh_reject"]
    assert strict.adjusted_p[2] == pytest.approx(FAMILY["holm_adj_3"], abs=5e-5)
    assert loose.adjusted_p[3] == pytest.approx(FAMILY["bh_adj_4"], abs=6e-6)
    assert strict.size == len(FAMILY["p"])
    assert loose.adjusted_p == pytest.approx(stats.false_discovery_control(FAMILY["p"]))


def test_adjusted_p_values_keep_the_order_that_was_given() -> None:
    assert holm([0.04, 0.01, 0.03]).adjusted_p == pytest.approx((0.06, 0.03, 0.06))
    assert benjamini_hochberg([0.04, 0.01, 0.03]).adjusted_p == pytest.approx((0.04, 0.03, 0.04))


def test_an_empty_family_is_empty() -> None:
    assert holm([]).adjusted_p == benjamini_hochberg([]).adjusted_p == ()


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_a_number_that_is_no_probability_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.01, bad])


TIES = (
    ([1.0, 2.0, 2.0, 3.0], [2.0, 3.0, 3.0, 4.0]),
    ([1.0, 1.0, 1.0, 1.0, 2.0], [2.0, 2.0, 2.0, 2.0, 2.0]),
    ([5.0, 5.0, 6.0, 7.0], [5.0, 8.0, 8.0, 9.0, 9.0]),
    ([1.0, 3.0, 5.0, 7.0, 9.0], [2.0, 4.0, 6.0, 8.0, 11.0]),
)


@pytest.mark.parametrize(("a", "b"), TIES, ids=["ties", "many ties", "unequal", "no ties"])
def test_the_rank_test_is_exact_with_ties_too(a: list[float], b: list[float]) -> None:
    exact = stats.mannwhitneyu(a, b, method=stats.PermutationMethod(n_resamples=10_000))
    assert p_of_two_samples(np.array(a), np.array(b)) == pytest.approx(float(exact.pvalue))


def test_without_ties_the_permutations_are_the_null_distribution() -> None:
    a, b = np.arange(9.0), np.arange(9.0) + 4.5
    assert p_of_two_samples(a, b) == pytest.approx(float(stats.mannwhitneyu(a, b, method="exact").pvalue))


@pytest.mark.parametrize("d", [[1.0, 2.0, 2.0, -3.0, 4.0, 4.0], [0.0, 1.0, 1.0, 1.0, -1.0, 2.0], [0.5, -0.5, 1.5, 2.5]])
def test_the_signed_rank_test_is_exact_with_ties_too(d: list[float]) -> None:
    exact = stats.wilcoxon([x for x in d if x], method=stats.PermutationMethod(n_resamples=10_000))
    assert p_of_pairs(np.array(d)) == pytest.approx(float(exact.pvalue))


def test_a_comparison_that_is_alone_needs_no_correction() -> None:
    assert families_of(holm([0.01])) == (None,)
    assert families_of(holm([])) == ()
    assert families_of(holm([0.01, 0.04, 0.03]), 0.05) == (
        Family("holm", 3, pytest.approx(0.03), True),  # type: ignore[arg-type]
        Family("holm", 3, pytest.approx(0.06), False),  # type: ignore[arg-type]
        Family("holm", 3, pytest.approx(0.06), False),  # type: ignore[arg-type]
    )
