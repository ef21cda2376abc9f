"""A Gaussian process over configurations, hosts and time: what the trials say of each configuration.

The log of the figure is a sum: main effects, a Matérn surface with a length for each parameter, what is special to
one configuration, the host, slow drift of all hosts and of each, and noise (Rasmussen and Williams, Gaussian Processes
for Machine Learning, 2006, ch. 2 and 5). Lengths have the prior of Hvarfner et al., Vanilla Bayesian Optimization
Performs Great in High Dimensions, 2024. Control runs are runs like others: through them hosts and drift are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.distributions import cholesky, cholesky_solve, lowest_point, triangular_solve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTH_PRIOR = math.sqrt(2.0), math.sqrt(3.0)
HOST_SD, LAB_DRIFT_SD, HOST_DRIFT_SD, DRIFT_HOURS = 0.05, 0.02, 0.015, 6.0
LEVEL_SD = 1.0
JITTER_RATIO, WIDEST_LOG = 1e-6, 8.0
NOISE_PRIOR = math.log(0.03), 0.5
MOST_STEPS = 40
TAIL_DEGREES, ROBUST_ROUNDS = 3.0, 2
"""Noise has the tails of Student's t with so many degrees of freedom: a slow mode is an outlier, not the noise."""
LEAP_SDS = 4.0
"""A run so far above what the others say is a leap: no machine is several times as fast by chance."""


@dataclass(frozen=True, eq=False)
class Observations:
    """Runs that have a figure: one row or entry for each.

    `positions` as of Space.positions, `unordered` one flag for each parameter, `config` the number of the
    configuration (0 = the default), `host` and `hours` where and when, `y` the natural log of the figure.
    `has_tails`: a machine lowers the figure by chance, but raises it little. What lies far below is noise of that run,
    what lies far above is the configuration's. Without, noise is normal.
    """

    positions: Floats
    unordered: NDArray[np.bool_]
    config: Ints
    host: Ints
    hours: Floats
    y: Floats
    has_tails: bool = False

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int) -> Observations:
        """The first so many runs."""
        cut = slice(count)
        return replace(
            self,
            positions=self.positions[cut],
            config=self.config[cut],
            host=self.host[cut],
            hours=self.hours[cut],
            y=self.y[cut],
        )

    @cached_property
    def identity(self) -> bytes:
        parts = (self.positions, self.config, self.host, self.hours, self.y)
        return bytes([self.has_tails]) + b"".join(part.tobytes() for part in parts)


@dataclass(frozen=True, eq=False)
class Tails:
    """What is not normal, one entry for each run.

    `scale`: by what factor the variance of its noise is larger. `own`: the variance of its configuration's own level
    beyond that of the others, in squared logs; the same for all runs of one configuration.
    """

    scale: Floats
    own: Floats

    @classmethod
    def none(cls, count: int) -> Tails:
        return cls(np.ones(count), np.zeros(count))


@dataclass(frozen=True, eq=False)
class Weights:
    """The parts of the sum: variances in squared logs, `closeness` one over the squared length of each parameter."""

    main: float
    surface: float
    special: float
    noise: float
    closeness: Floats


def squared_differences(a: Floats, b: Floats, unordered: NDArray[np.bool_]) -> Floats:
    """How far apart configurations are, in each parameter: squared fractions of the range, 1 for choices that differ.

    `a` and `b` have one row for each configuration, as of Space.positions, in fractions; `unordered` one flag for each
    parameter. What is returned has the shape (parameters, rows of a, rows of b).
    """
    away = a.T[:, :, None] - b.T[:, None, :]
    away *= away
    away[unordered] = away[unordered] != 0
    return np.asarray(away)


def _matern(squared: Floats) -> tuple[Floats, Floats]:
    """The correlation at these squared distances, and its derivative by the squared distance."""
    distance = math.sqrt(5.0) * np.sqrt(squared)
    decay = np.exp(-distance)
    return (1 + distance + distance * distance / 3) * decay, -(5 / 6) * (1 + distance) * decay


def _main_effects(apart: Floats) -> Floats:
    """Correlation of sums of one smooth effect for each parameter (Duvenaud and others, Additive Gaussian Processes,
    2011)."""
    return np.asarray(np.exp(-apart).mean(axis=0))


def _circumstances(a: Observations, b: Observations) -> Floats:
    """The covariance that comes from the host, the time and the level of everything."""
    same_host = a.host[:, None] == b.host[None, :]
    decay = np.exp(-np.abs(a.hours[:, None] - b.hours[None, :]) / DRIFT_HOURS)
    drift = decay * (LAB_DRIFT_SD**2 + HOST_DRIFT_SD**2 * same_host)
    return np.asarray(LEVEL_SD**2 + HOST_SD**2 * same_host + drift)


class _Likelihood:
    """Minus the log posterior of the weights and its gradient, in logs of the weights."""

    def __init__(self, seen: Observations, tails: Tails) -> None:
        self.y = seen.y - seen.y.mean()
        self.scale = tails.scale
        self.apart = squared_differences(seen.positions, seen.positions, seen.unordered)
        self.flat = self.apart.reshape(len(self.apart), -1)
        self.main = _main_effects(self.apart)
        self.same = (seen.config[:, None] == seen.config[None, :]).astype(float)
        self.around = _circumstances(seen, seen) + tails.own[:, None] * self.same
        parameters = len(self.apart)
        spread = max(float(np.var(self.y)), 1e-4)
        length = LENGTH_PRIOR[0] + 0.5 * math.log(parameters)
        self.means = np.array(
            [math.log(spread), math.log(spread), math.log(0.1 * spread), 2 * NOISE_PRIOR[0]]
            + [-2 * length] * parameters
        )
        self.sds = np.array([1.5, 1.5, 1.5, 2 * NOISE_PRIOR[1]] + [2 * LENGTH_PRIOR[1]] * parameters)
        self.start = self.means.copy()
        self.start[4:] += 2.0

    def __call__(self, logs: Floats) -> tuple[float, Floats]:
        main, surface, special, noise = np.exp(logs[:4])
        closeness = np.exp(logs[4:])
        matern, slope = _matern((closeness @ self.flat).reshape(self.same.shape))
        k = main * self.main + surface * matern + special * self.same + self.around
        k.flat[:: len(k) + 1] += noise * self.scale + JITTER_RATIO * (LEVEL_SD**2 + main + surface + special)
        try:
            lower = cholesky(k)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(logs)
        inverse = cholesky_solve(lower, np.eye(len(k)))
        alpha = inverse @ self.y
        away = (logs - self.means) / self.sds
        value = 0.5 * float(self.y @ alpha) + float(np.log(np.diag(lower)).sum()) + 0.5 * float(away @ away)
        a = np.outer(alpha, alpha) - inverse
        parts = [main * (a * self.main).sum(), surface * (a * matern).sum(), special * (a * self.same).sum()]
        parts.append(noise * float(np.diag(a) @ self.scale))
        lengths = closeness * (self.flat @ (a * slope * surface).ravel())
        return value, -0.5 * np.concatenate([parts, lengths]) + away / self.sds


def weights_of(seen: Observations) -> Weights:
    """The most likely weights of these runs, which must not be empty."""
    return _weights(_Hashed(seen))


class _Hashed:
    """Observations as the key of a cache: the same runs give the same weights."""

    def __init__(self, seen: Observations) -> None:
        self.seen = seen

    def __hash__(self) -> int:
        return hash(self.seen.identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and self.seen.identity == other.seen.identity


@lru_cache(maxsize=64)
def _weights(hashed: _Hashed) -> Weights:
    tails = Tails.none(len(hashed.seen))
    start: Floats | None = None
    for _ in range(ROBUST_ROUNDS if hashed.seen.has_tails else 1):
        likelihood = _Likelihood(hashed.seen, tails)
        start = lowest_point(
            likelihood,
            likelihood.start if start is None else start,
            bounds=[(mean - WIDEST_LOG, mean + WIDEST_LOG) for mean in likelihood.means],
            most_steps=MOST_STEPS,
        )
        values = np.exp(start)
        main, surface, special, noise = (float(value) for value in values[:4])
        weights = Weights(main, surface, special, noise, closeness=values[4:])
        tails = outlying(hashed.seen, weights, tails)
    return weights


def outlying(seen: Observations, weights: Weights, tails: Tails) -> Tails:
    """The tails of these runs, from how far each lies from what the others say and from the tails as they were.

    A run that lies far off has more noise; one that lies far above is its configuration's own level instead.
    """
    if not seen.has_tails:
        return tails
    _, inverse = _solved(seen, weights, tails)
    off = (inverse @ (seen.y - seen.y.mean())) / np.diag(inverse)
    z_squared = off**2 * np.diag(inverse)
    scale = np.maximum(1.0, (TAIL_DEGREES + z_squared) / (TAIL_DEGREES + 1))
    leaps = (off > 0) & (z_squared > LEAP_SDS**2)
    scale[leaps] = 1.0
    same = seen.config[:, None] == seen.config[None, :]
    return Tails(scale, np.maximum(tails.own, np.where(same & leaps[None, :], off[None, :] ** 2, 0.0).max(axis=1)))


def _covariance(seen: Observations, weights: Weights, tails: Tails) -> Floats:
    there = seen.positions, seen.config, tails.own
    k = _between(weights, seen.unordered, there, there)
    k = k + _circumstances(seen, seen)
    whole = LEVEL_SD**2 + weights.main + weights.surface + weights.special
    k.flat[:: len(k) + 1] += weights.noise * tails.scale + JITTER_RATIO * whole
    return k


def _solved(seen: Observations, weights: Weights, tails: Tails) -> tuple[Floats, Floats]:
    """The lower triangle of the covariance of the runs, and its inverse."""
    lower = cholesky(_covariance(seen, weights, tails))
    return lower, cholesky_solve(lower, np.eye(len(seen)))


def _between(
    weights: Weights, unordered: NDArray[np.bool_], a: tuple[Floats, Ints, Floats], b: tuple[Floats, Ints, Floats]
) -> Floats:
    """The covariance that comes from the configurations, given as positions, numbers and own variances."""
    apart = squared_differences(a[0], b[0], unordered)
    squared = (weights.closeness @ apart.reshape(len(apart), -1)).reshape(apart.shape[1:])
    special = (weights.special + a[2][:, None]) * (a[1][:, None] == b[1][None, :])
    return np.asarray(weights.main * _main_effects(apart) + weights.surface * _matern(squared)[0] + special)


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed of some configurations: log of the ratio to the default, one entry each, with covariance."""

    mean: Floats
    covariance: Floats

    @property
    def sd(self) -> Floats:
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 1e-12)))


class Surface:
    """The process given some runs."""

    def __init__(self, seen: Observations, weights: Weights) -> None:
        self.seen, self.weights = seen, weights
        tails = Tails.none(len(seen))
        for _ in range(ROBUST_ROUNDS):
            tails = outlying(seen, weights, tails)
        self._own = dict(zip(seen.config.tolist(), tails.own.tolist(), strict=True))
        self._lower = cholesky(_covariance(seen, weights, tails))
        self._level = float(seen.y.mean())
        self._alpha = cholesky_solve(self._lower, seen.y - self._level)

    def _configs(self, a: Floats, a_config: Ints, b: Floats, b_config: Ints) -> Floats:
        there, here = (a, a_config, self._own_of(a_config)), (b, b_config, self._own_of(b_config))
        return _between(self.weights, self.seen.unordered, there, here)

    def _own_of(self, config: Ints) -> Floats:
        return np.array([self._own.get(number, 0.0) for number in config.tolist()])

    def believe(self, positions: Floats, config: Ints) -> Belief:
        """Of these configurations; the first one is the default.

        `positions` has one row for each, fractions of the ranges; `config` numbers them as the runs do, new ones < 0.
        """
        cross = self._configs(self.seen.positions, self.seen.config, positions, config)
        prior = self._configs(positions, config, positions, config)
        half = triangular_solve(self._lower, cross)
        mean, covariance = cross.T @ self._alpha, prior - half.T @ half
        covariance = covariance - covariance[0][None, :] - covariance[:, :1] + covariance[0, 0]
        return Belief(mean - mean[0], covariance)

    def absolute(self, positions: Floats, config: Ints, hosts: int) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the log of the figure itself on the mean of the hosts, one entry each.

        `positions` has one row for each configuration, fractions of the ranges; the logs are relative to the unit.
        """
        common = LEVEL_SD**2 + HOST_SD**2 / hosts
        cross = self._configs(self.seen.positions, self.seen.config, positions, config) + common
        weights = self.weights
        prior = weights.main + weights.surface + weights.special + self._own_of(config) + common
        half = triangular_solve(self._lower, cross)
        variance = np.maximum(prior - (half * half).sum(axis=0), 1e-12)
        return cross.T @ self._alpha + self._level, np.sqrt(variance)
