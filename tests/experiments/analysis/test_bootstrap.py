"""The bootstrap agrees with scipy's, is repeatable, and is asked only where it may be believed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.analysis.bootstrap import bca_of_pairs, bca_of_two_samples
from experiments.analysis.verdict import judge

RNG = np.random.default_rng(7)
A = RNG.lognormal(0, 0.05, 24)
B = RNG.lognormal(0.03, 0.08, 30)


def difference(b: np.ndarray, a: np.ndarray, axis: int = -1) -> np.ndarray:
    result: np.ndarray = b.mean(axis=axis) - a.mean(axis=axis)
    return result


def test_two_samples_give_scipys_interval_within_the_noise_of_resampling() -> None:
    theirs = stats.bootstrap((B, A), difference, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    assert bca_of_two_samples(A, B) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_pairs_give_scipys_interval_within_the_noise_of_resampling() -> None:
    d = B[:24] - A
    theirs = stats.bootstrap((d,), np.mean, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    assert bca_of_pairs(d) == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_the_same_data_give_the_same_interval_and_equal_values_one_without_width() -> None:
    assert bca_of_two_samples(A, B) == bca_of_two_samples(A, B)
    assert bca_of_pairs(np.full(20, 0.25)) == (0.25, 0.25)


@pytest.mark.parametrize(("n", "known"), [(19, False), (20, True)])
def test_a_verdict_has_it_from_twenty_repetitions_on(n: int, known: bool) -> None:
    verdict = judge(list(A[:n]), list(B[:n]), higher_is_better=True, design="independent")
    assert (verdict.bca_ci95_pct is not None) == known
