"""How throughput grows with CPUs: the universal scalability law and Amdahl's, with intervals and no invented peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.distributions import fit_curve, student_quantile

Interval = tuple[float, float]
Floats = NDArray[np.float64]

MIN_FOR_LAW = 4
"""Distinct CPU counts: three parameters and one left to say how well they fit."""
ENOUGH_FOR_LAW = 6
"""Below this many distinct CPU counts the parameters are weak; R's usl package warns there, too."""
FARTHEST_PEAK_RATIO = 2.0
"""A peak farther out than this many times the largest measured CPU count is a guess."""
_ZERO_BETA = 1e-12


@dataclass(frozen=True)
class Parameter:
    """An estimate with its standard error and 95 % interval; both None where the data do not determine it."""

    value: float
    se: float | None
    ci95: Interval | None


@dataclass(frozen=True)
class Peak:
    """The CPU count beyond which more CPUs make it slower, and the throughput there."""

    cpus: float
    throughput_rps: float


@dataclass(frozen=True)
class ScalingLaw:
    """X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)).

    `gamma` is the throughput of one CPU, `alpha` the share of the work that waits for others, `beta` the cost of
    keeping CPUs consistent with each other; for Amdahl's law it is 0. `sigma` is the residual standard error on `df`
    degrees of freedom, as a ratio (with constant noise in requests/s), `n` the number of points, `largest` the largest
    CPU count measured.
    """

    kind: Literal["usl", "amdahl"]
    gamma: Parameter
    alpha: Parameter
    beta: Parameter
    sigma: float
    df: int
    n: int
    largest: float
    covariance: tuple[tuple[float, ...], ...]

    def at(self, cpus: float) -> float:
        """Throughput that the law gives for this many CPUs, in the unit of the measured points."""
        return float(_usl(np.array([cpus]), self.gamma.value, self.alpha.value, self.beta.value)[0])

    def band(self, cpus: float) -> Interval | None:
        """The 95 % interval of the law's curve there (delta method); None where the parameters are undetermined."""
        slope = _gradient(cpus, self.gamma.value, self.alpha.value, self.beta.value)[: len(self.covariance)]
        variance = float(slope @ np.array(self.covariance) @ slope)
        if not math.isfinite(variance):
            return None
        half = student_quantile(self.df, 0.975) * math.sqrt(max(variance, 0.0))
        return self.at(cpus) - half, self.at(cpus) + half

    def efficiency(self, cpus: float) -> float:
        """Throughput per CPU, relative to that of one CPU."""
        return self.at(cpus) / (cpus * self.gamma.value)

    @property
    def computed_peak(self) -> Peak | None:
        """Where the formula has its maximum, believable or not; None when it has none."""
        if self.beta.value <= 0 or self.alpha.value >= 1:
            return None
        cpus = math.sqrt((1 - self.alpha.value) / self.beta.value)
        return Peak(cpus, self.at(cpus))

    @property
    def peak(self) -> Peak | None:
        """The maximum, only when it is real: the interval of beta excludes 0, and it is not far beyond the points."""
        found, interval = self.computed_peak, self.beta.ci95
        if found is None or interval is None or interval[0] <= 0:
            return None
        return found if found.cpus <= FARTHEST_PEAK_RATIO * self.largest else None

    @property
    def optimum(self) -> Peak | None:
        """1 / alpha CPUs: there each does at most half of what one alone does; the rest is lost to waiting."""
        if self.alpha.value <= 0:
            return None
        cpus = 1 / self.alpha.value
        return Peak(cpus, self.at(cpus))

    @property
    def limit_rps(self) -> float | None:
        """gamma / alpha: what no number of CPUs can exceed; None when nothing is serial."""
        return self.gamma.value / self.alpha.value if self.alpha.value > 0 else None

    @property
    def limit_ci95_rps(self) -> Interval | None:
        """The 95 % interval of the limit (delta method on its log); None where the data do not bound it."""
        alpha = self.alpha
        if self.limit_rps is None or alpha.ci95 is None or alpha.ci95[0] <= 0:
            return None
        slope = np.array([1 / self.gamma.value, -1 / alpha.value, 0.0])[: len(self.covariance)]
        variance = float(slope @ np.array(self.covariance) @ slope)
        if not math.isfinite(variance):
            return None
        half = student_quantile(self.df, 0.975) * math.sqrt(max(variance, 0.0))
        return self.limit_rps * math.exp(-half), self.limit_rps * math.exp(half)


def fit_law(
    cpus: Sequence[float],
    throughput_rps: Sequence[float],
    *,
    noise: Literal["proportional", "constant"] = "proportional",
) -> ScalingLaw | None:
    """Fit the universal scalability law by least squares; Amdahl's when its beta comes out at 0.

    Noise is proportional to the throughput (the fit is one of logs) unless it is said to be constant, in requests/s, as
    R's usl package takes it. None with fewer than four distinct CPU counts. Intervals use Student's t with n - 3
    degrees of freedom (constant noise, Amdahl's law: n - 2). ValueError: a CPU count or a throughput is not positive.
    """
    n, x = np.array(cpus, dtype=float), np.array(throughput_rps, dtype=float)
    if len(n) != len(x) or not (np.all(n > 0) and np.all(x > 0) and np.all(np.isfinite(x))):
        raise ValueError("every point needs a positive CPU count and a positive, finite throughput")
    if len(set(cpus)) < MIN_FOR_LAW:
        return None
    start = (float(np.max(x / n)), 0.01, 1e-4)
    if noise == "proportional":
        return _fitted_on_logs(n, x, start)
    law = _fitted("usl", _usl, n, x, start)
    return law if law.beta.value > _ZERO_BETA else _fitted("amdahl", _amdahl, n, x, start[:2])


def _fitted(
    kind: Literal["usl", "amdahl"], formula: Callable[..., Floats], n: Floats, x: Floats, start: tuple[float, ...]
) -> ScalingLaw:
    # In units of the largest throughput: the parameters are then of like size, whatever is being counted.
    unit = float(np.max(x))
    found, covariance = fit_curve(
        formula, n, x / unit, start=(start[0] / unit, *start[1:]), upper=(np.inf, 1.0, 1.0)[: len(start)]
    )
    df = len(n) - len(start)
    scale = np.diag([unit, 1.0, 1.0][: len(start)])
    found, covariance = scale @ found, scale @ covariance @ scale
    residuals = x - formula(n, *found)
    parameters = [_parameter(float(v), float(covariance[i, i]), df) for i, v in enumerate(found)]
    return ScalingLaw(
        kind=kind,
        gamma=parameters[0],
        alpha=parameters[1],
        beta=parameters[2] if len(parameters) == 3 else Parameter(0.0, None, None),
        sigma=math.sqrt(float(residuals @ residuals) / df),
        df=df,
        n=len(n),
        largest=float(np.max(n)),
        covariance=tuple(tuple(float(v) for v in row) for row in covariance),
    )


def _fitted_on_logs(n: Floats, x: Floats, start: tuple[float, ...]) -> ScalingLaw:
    """The values are those of a law, so none is below 0; the intervals are those of the fit that may go there.

    A fit that is held at a bound knows nothing of how far the data would let it go: its intervals are too narrow.
    """
    logs, beyond = np.log(x), (np.inf, np.inf, np.inf)
    begin = (math.log(start[0]), *start[1:])
    held, _ = fit_curve(_log_usl, n, logs, start=begin, upper=(np.inf, 1.0, 1.0), lower=(-np.inf, 0.0, 0.0))
    free, covariance = fit_curve(
        _log_usl, n, logs, start=held.tolist(), upper=beyond, lower=(-np.inf, -np.inf, -np.inf)
    )
    kind: Literal["usl", "amdahl"] = "usl" if held[2] > _ZERO_BETA else "amdahl"
    if kind == "amdahl":
        flat, _ = fit_curve(
            lambda cpus, log_gamma, alpha: _log_usl(cpus, log_gamma, alpha, 0.0),
            n,
            logs,
            start=begin[:2],
            upper=(np.inf, 1.0),
            lower=(-np.inf, 0.0),
        )
        held = np.array([*flat, 0.0])
    df = len(n) - len(begin)
    found = [
        _around(float(v), float(at), float(covariance[i, i]), df)
        for i, (v, at) in enumerate(zip(held, free, strict=True))
    ]
    residuals = logs - _log_usl(n, *held)
    gamma = math.exp(held[0])
    scale = np.diag([gamma, 1.0, 1.0])
    return ScalingLaw(
        kind=kind,
        gamma=_exponential(found[0]),
        alpha=found[1],
        beta=found[2],
        sigma=math.sqrt(float(residuals @ residuals) / df),
        df=df,
        n=len(n),
        largest=float(np.max(n)),
        covariance=tuple(tuple(float(v) for v in row) for row in scale @ covariance @ scale),
    )


def _around(value: float, centre: float, variance: float, df: int) -> Parameter:
    """The interval lies around the free estimate, and holds the value."""
    free = _parameter(centre, variance, df)
    ci95 = None if free.ci95 is None else (min(free.ci95[0], value), max(free.ci95[1], value))
    return Parameter(value, free.se, ci95)


def _exponential(log: Parameter) -> Parameter:
    value = math.exp(log.value)
    ci95 = None if log.ci95 is None else (math.exp(log.ci95[0]), math.exp(log.ci95[1]))
    return Parameter(value, None if log.se is None else value * log.se, ci95)


def _log_usl(n: Floats, log_gamma: float, alpha: float, beta: float) -> Floats:
    """The log of the law; a denominator that the free fit lets fall to 0 counts as a very small one."""
    below = 1 + alpha * (n - 1) + beta * n * (n - 1)
    logs: Floats = log_gamma + np.log(n) - np.log(np.maximum(below, 1e-9))
    return logs


def _parameter(value: float, variance: float, df: int) -> Parameter:
    if not math.isfinite(variance) or variance < 0:
        return Parameter(value, None, None)
    se = math.sqrt(variance)
    half = student_quantile(df, 0.975) * se
    return Parameter(value, se, (value - half, value + half))


def _usl(n: Floats, gamma: float, alpha: float, beta: float) -> Floats:
    return gamma * n / (1 + alpha * (n - 1) + beta * n * (n - 1))


def _amdahl(n: Floats, gamma: float, alpha: float) -> Floats:
    return _usl(n, gamma, alpha, 0.0)


def _gradient(n: float, gamma: float, alpha: float, beta: float) -> NDArray[Any]:
    """The law's derivatives by gamma, alpha and beta."""
    below = 1 + alpha * (n - 1) + beta * n * (n - 1)
    by_below = -gamma * n / below**2
    return np.array([n / below, by_below * (n - 1), by_below * n * (n - 1)])
