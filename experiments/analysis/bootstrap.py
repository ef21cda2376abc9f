"""Bias-corrected and accelerated bootstrap intervals of a change: a further opinion, from 20 repetitions on.

The method is Efron's BCa (Better Bootstrap Confidence Intervals, 1987).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.distributions import normal_quantile, normal_share

RESAMPLES = 2000
_SEED = 20_210
Values = NDArray[np.float64]


def bca_of_pairs(differences: Values, *, confidence_ratio: float = 0.95) -> tuple[float, float]:
    """The interval of the mean of the differences. The same data always give the same interval."""
    resampled = _resampled_means(differences, np.random.default_rng(_SEED))
    return _interval(resampled, float(differences.mean()), _left_out(differences), confidence_ratio)


def bca_of_two_samples(a: Values, b: Values, *, confidence_ratio: float = 0.95) -> tuple[float, float]:
    """The interval of mean(b) - mean(a); both are resampled on their own."""
    rng = np.random.default_rng(_SEED)
    resampled = _resampled_means(b, rng) - _resampled_means(a, rng)
    influence = np.concatenate([_left_out(b), -_left_out(a)])
    return _interval(resampled, float(b.mean() - a.mean()), influence, confidence_ratio)


def _resampled_means(values: Values, rng: np.random.Generator) -> Values:
    means: Values = values[rng.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    return means


def _left_out(values: Values) -> Values:
    """How much each value moves the mean: the mean of the means without one value, less each of them."""
    without = (values.sum() - values) / (len(values) - 1)
    # Weighted by (n - 1) / n, so that two samples of unequal size add up (Efron and Tibshirani, section 14.3).
    influence: Values = (without.mean() - without) * (len(values) - 1) / len(values)
    return influence


def _interval(resampled: Values, estimate: float, influence: Values, confidence_ratio: float) -> tuple[float, float]:
    spread = float((influence**2).sum())
    if spread <= 1e-24:
        return estimate, estimate
    acceleration = float((influence**3).sum()) / (6 * spread**1.5)
    below = float(np.mean(resampled < estimate) + np.mean(resampled == estimate) / 2)
    bias = normal_quantile(below)
    ends = []
    for tail in ((1 - confidence_ratio) / 2, (1 + confidence_ratio) / 2):
        z = bias + normal_quantile(tail)
        ends.append(normal_share(bias + z / (1 - acceleration * z)))
    low, high = np.quantile(resampled, ends)
    return float(low), float(high)
