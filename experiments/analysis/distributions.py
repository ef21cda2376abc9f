"""Distributions, tests, fits and linear algebra of scipy: the only module that imports it.

Loading scipy takes longer than most commands and pages take altogether, so it is loaded with the first figure that
needs it, and not with this module. The formulas are those of https://docs.scipy.org/doc/scipy/reference/.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """The least squares line through values at 0, 1, 2 and so on: its slope, and the p-value of its being flat."""

    slope: float
    p: float


@cache
def _special() -> Any:
    from scipy import special  # on demand, see above

    return special


@cache
def _stats() -> Any:
    from scipy import stats  # on demand, see above

    return stats


@cache
def _optimize() -> Any:
    from scipy import optimize  # on demand, see above

    return optimize


@cache
def _linalg() -> Any:
    from scipy import linalg  # on demand, see above

    return linalg


def normal_share(z: float) -> float:
    """The share of a standard normal distribution below `z`."""
    return float(_special().ndtr(z))


def normal_shares(z: Floats) -> Floats:
    """`normal_share` of each value: shares of 1, in an array of the shape of `z` (standard deviations)."""
    found: Floats = _special().ndtr(z)
    return found


def normal_quantile(share: float) -> float:
    """The value below which this share of a standard normal distribution lies."""
    return float(_special().ndtri(share))


def student_share(degrees: float, t: float) -> float:
    """The share of Student's t distribution with so many degrees of freedom below `t`."""
    return float(_special().stdtr(degrees, t))


def student_quantile(degrees: float, share: float) -> float:
    """The value below which this share of Student's t distribution with so many degrees of freedom lies."""
    return float(_special().stdtrit(degrees, share))


def student_quantiles(degrees: ArrayLike, share: float) -> Floats:
    """`student_quantile` for each of several degrees of freedom: an array of quantiles of their shape."""
    found: Floats = _special().stdtrit(degrees, share)
    return found


def chi_squared_quantile(degrees: float, share: float) -> float:
    """The value below which this share of the chi-squared distribution with so many degrees of freedom lies."""
    return float(2 * _special().gammaincinv(degrees / 2, share))


def noncentral_student_share(degrees: float, shift: float, t: float) -> float:
    """The share of the noncentral t distribution (degrees of freedom, shift) below `t`; nan where it has none."""
    return float(_special().nctdtr(degrees, shift, t))


def welch_p(a: Floats, b: Floats) -> float:
    """The two-sided p-value of Welch's t test of `a` and `b`, one value per repetition each, of one unit."""
    return float(_stats().ttest_ind(a, b, equal_var=False).pvalue)


def welch_interval(a: Floats, b: Floats, confidence_ratio: float) -> tuple[float, float]:
    """Welch's interval of the mean of `a` less that of `b`, in their unit; one value per repetition each."""
    found = _stats().ttest_ind(a, b, equal_var=False).confidence_interval(confidence_ratio)
    return float(found.low), float(found.high)


def line_through(values: Floats) -> Line:
    """The least squares line through the values, in order and one step apart; the slope is in their unit per step."""
    fit = _stats().linregress(np.arange(len(values)), values)
    return Line(float(fit.slope), float(fit.pvalue))


def fit_curve(
    formula: Callable[..., Floats],
    x: Floats,
    y: Floats,
    *,
    start: Sequence[float],
    upper: Sequence[float],
    lower: Sequence[float] | None = None,
) -> tuple[Floats, Floats]:
    """The parameters of `formula` with the least squares to `y`, and their covariance.

    They lie between `lower` (0 unless told) and `upper`. `x` and `y` have one length and any units; `formula` takes `x`
    and the parameters, one for each of `start` and `upper`, and gives an array like `y`. A covariance that the points
    do not determine is infinite.
    """
    optimize = _optimize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optimize.OptimizeWarning)  # what is undetermined is told by the covariance
        found, covariance = optimize.curve_fit(
            formula,
            x,
            y,
            p0=tuple(start),
            bounds=([0.0] * len(start) if lower is None else list(lower), list(upper)),
            method="trf",
            x_scale="jac",
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-12,
            max_nfev=10_000,
        )
    return found, covariance


def sobol(dimensions: int, *, seed: Sequence[int]) -> Callable[[int], Floats]:
    """A scrambled Sobol sequence: called with a power of two it gives so many further rows, `dimensions` in [0, 1).

    They are shares of 1, one for each dimension.
    """
    source = _stats().qmc.Sobol(dimensions, rng=np.random.default_rng(seed))
    return lambda count: source.random(count)


def cholesky(matrix: Floats) -> Floats:
    """The lower triangle whose product with its transpose is this symmetric matrix: of its shape and unit (its root).

    np.linalg.LinAlgError when it is not positive definite.
    """
    found: Floats = _linalg().cholesky(matrix, lower=True, check_finite=False)
    return found


def cholesky_solve(lower: Floats, right: Floats) -> Floats:
    """The solution x of `lower @ lower.T @ x = right`, of the shape and unit of `right`; `lower` is dimensionless."""
    found: Floats = _linalg().cho_solve((lower, True), right, check_finite=False)
    return found


def triangular_solve(lower: Floats, right: Floats) -> Floats:
    """The solution x of `lower @ x = right`, of the shape and unit of `right`; `lower` is dimensionless."""
    found: Floats = _linalg().solve_triangular(lower, right, lower=True, check_finite=False)
    return found


def lowest_point(
    formula: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    *,
    bounds: Sequence[tuple[float, float]],
    most_steps: int,
) -> Floats:
    """Where a function is least, near `start` and within `bounds` (one pair for each parameter), by L-BFGS-B.

    `formula` gives the value and its gradient. Where `most_steps` do not suffice it is the best point seen so far,
    in the unit of `start`.
    """
    options = {"maxiter": most_steps}
    found = _optimize().minimize(formula, start, jac=True, method="L-BFGS-B", bounds=list(bounds), options=options)
    point: Floats = found.x
    return point
