"""A world of configurations with what is true of each, and the lab in which it is measured.

The lab adds what real ones add: noise from run to run, hosts of different speed, drift, slow modes on some hosts,
crashes, runs that are invalid, and a 99th percentile with a limit. The definition is that of docs/tuning.md.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bench.tuning.game import Problem, Result
from experiments.analysis.tuning.space import Config, Key, Space, Value

Floats = NDArray[np.float64]

RUN_HOURS, CRASH_HOURS = 0.2, 0.08
INVALID_RATIO = 0.03
SLOWEST_HOST, FASTEST_HOST = 0.94, 1.06
DRIFT_STEP_HOURS, DRIFT_MEMORY_HOURS, DRIFT_SD, DAILY_RATIO, DRIFT_DAYS = 1 / 6, 6.0, 0.012, 0.015, 15
UNSTABLE_RATIO = 0.20
P99_NOISE, P99_SPREAD, P99_TRADE, P99_MARGIN = 0.08, 0.22, 0.15, 1.10
USUAL_CRASHES, REGION_CRASHES, MOST_CRASHES = 0.005, 0.9, 0.05


@dataclass(frozen=True)
class Table:
    """Every configuration that exists, in a fixed order, and what was measured of it.

    `base` has one row per configuration and one column per host: the mean figure, without the host's own speed.
    `noise_ratio` is the relative standard deviation from run to run. `crashes` and the slow modes, each one row per
    configuration and one column per host, are probabilities; None leaves them to the lab.
    """

    name: str
    space: Space
    configs: tuple[dict[str, Value], ...]
    default: int
    higher_is_better: bool
    base: Floats
    noise_ratio: Floats
    crashes: Floats | None = None
    makes_unstable: bool = True

    @property
    def hosts(self) -> int:
        return int(self.base.shape[1])

    @cached_property
    def features(self) -> Floats:
        """One row for each configuration: positions, and for each unordered choice a column of 0 and 0.5."""
        return np.array([self.encoded(config) for config in self.configs])

    @cached_property
    def places(self) -> dict[Key, int]:
        return {self.space.key(config): place for place, config in reversed(list(enumerate(self.configs)))}

    def encoded(self, config: Config) -> Floats:
        columns: list[float] = []
        for one in self.space.parameters:
            value = config[one.name]
            columns += [one.position(value)] if one.is_ordered else [0.5 * (value == choice) for choice in one.choices]
        return np.array(columns)

    def nearest(self, config: Config) -> int:
        """The place of the nearest configuration that exists; of several, one that the question decides."""
        key = self.space.key(config)
        if key not in self.places:
            distance = np.abs(self.features - self.encoded(config)).sum(axis=1)
            near = np.flatnonzero(distance <= distance.min() + 1e-9)
            self.places[key] = int(near[zlib.crc32(repr(key).encode()) % len(near)])
        return self.places[key]


@dataclass(frozen=True)
class Truth:
    """What is true of each configuration over all hosts: gain over the default as a ratio, p99 in ms, admissible."""

    gain: Floats
    p99_ms: Floats
    limit_ms: float
    admissible: NDArray[np.bool_]
    crashes: Floats

    @property
    def best_gain(self) -> float:
        return float(self.gain[self.admissible].max())


class Lab:
    """One lab around a table; the seed decides everything about it."""

    def __init__(self, table: Table, seed: int) -> None:
        self.table, self.seed = table, seed
        source = np.random.default_rng([zlib.crc32(table.name.encode()), seed, 7])
        n, hosts = table.base.shape
        self.slow_factor, self.slow = np.ones(n), np.zeros((n, hosts))
        if table.makes_unstable:
            self._plant_slow_modes(source)
        self.crashes = self._crash_region(source) if table.crashes is None else table.crashes
        self.host_speed = source.permutation(np.linspace(SLOWEST_HOST, FASTEST_HOST, hosts))
        self._log_drift = _drift(source, hosts + 1)
        self._daily_phase_hours = source.uniform(0, 24)
        self.p99_ms = self._latency(source)
        self.truth = self._truth()

    def problem(self, budget: int, seed: int) -> Problem:
        """What a policy may know."""
        table = self.table
        return Problem(
            table.space,
            dict(table.configs[table.default]),
            table.higher_is_better,
            self.truth.limit_ms,
            table.hosts,
            budget,
            np.random.default_rng([seed, 1]),
        )

    def measure(self, config: Config, host: int, time_hours: float, source: Generator) -> Result:
        """One run. Figures of an invalid run are wrong on purpose: whoever uses them has made a mistake."""
        place = self.table.nearest(config)
        applied = self.table.configs[place]
        if source.random() < self.crashes[place, host]:
            return Result(applied, host, time_hours, CRASH_HOURS, "crash", None, None)
        shock = float(np.clip(source.standard_t(6) / math.sqrt(1.5), -4, 4))
        is_slow = source.random() < self.slow[place, host]
        machine = float(self.host_speed[host]) * self._drift_at(host, time_hours)
        speed = machine * (float(self.slow_factor[place]) if is_slow else 1.0)
        figure = float(self.table.base[place, host]) * (speed if self.table.higher_is_better else 1 / speed)
        figure *= 1 + float(self.table.noise_ratio[place]) * shock
        p99 = float(self.p99_ms[place]) / machine * (1.5 if is_slow else 1.0)
        p99 *= 1 + P99_NOISE * float(np.clip(source.normal(), -3, 3))
        if source.random() < INVALID_RATIO:
            wrong = source.uniform(0.5, 0.9) if source.random() < 0.5 else source.uniform(1.1, 1.6)
            return Result(applied, host, time_hours, RUN_HOURS, "invalid", figure * wrong, p99 / wrong)
        return Result(applied, host, time_hours, RUN_HOURS, "ok", figure, p99)

    def _drift_at(self, host: int, time_hours: float) -> float:
        at = int(time_hours / DRIFT_STEP_HOURS) % len(self._log_drift)
        daily = DAILY_RATIO * math.sin(2 * math.pi * (time_hours + self._daily_phase_hours) / 24)
        return math.exp(float(self._log_drift[at, 0] + self._log_drift[at, 1 + host]) + daily)

    def _plant_slow_modes(self, source: Generator) -> None:
        """A fifth of the configurations, half by a rule on three parameters: slower in some runs on some hosts."""
        x, n, hosts = self.table.features, len(self.table.configs), self.table.hosts
        columns = source.choice(x.shape[1], size=min(3, x.shape[1]), replace=False)
        rule = x[:, columns] @ source.normal(size=len(columns))
        rule = (rule - rule.mean()) / (rule.std() + 1e-9) + source.normal(size=n)
        rule[self.table.default] = -np.inf
        for place in np.argsort(-rule)[: int(UNSTABLE_RATIO * n)]:
            bad = source.random(hosts) < 0.5
            bad[source.integers(hosts)] |= not bad.any()
            self.slow_factor[place] = source.uniform(0.60, 0.85)
            self.slow[place, bad] = source.uniform(0.3, 0.7)

    def _crash_region(self, source: Generator) -> Floats:
        """Where one or two parameters are near those of some configuration: 5 to 20 % of all, never the default."""
        table = self.table
        crashes = np.full(table.base.shape, USUAL_CRASHES)
        positions = table.space.positions(table.configs)
        for _ in range(400):
            count = min(int(source.integers(1, 3)), positions.shape[1])
            centre = int(source.integers(len(positions)))
            inside = np.ones(len(positions), bool)
            for column in source.choice(positions.shape[1], size=count, replace=False):
                width = 1e-9 if table.space.parameters[column].choices else 0.13
                inside &= np.abs(positions[:, column] - positions[centre, column]) < width + 1e-12
            if 0.05 <= inside.mean() <= 0.20 and not inside[table.default]:
                crashes[inside] = REGION_CRASHES
                break
        return crashes

    def _latency(self, source: Generator) -> Floats:
        table = self.table
        means = np.round(table.base.mean(axis=1) * (1 if table.higher_is_better else -1), 9)
        rank = np.unique(means, return_inverse=True)[1].astype(float)
        rank /= max(1.0, rank.max())
        effect = table.features @ source.normal(size=table.features.shape[1])
        effect = (effect - effect[table.default]) / (effect.std() + 1e-9) * P99_SPREAD
        return np.asarray(20.0 * np.exp(effect + P99_TRADE * np.maximum(0, rank - rank[table.default])))

    def _truth(self) -> Truth:
        slow, factor, default = self.slow, self.slow_factor[:, None], self.table.default
        if self.table.higher_is_better:
            means = (self.table.base * (1 - slow + slow * factor) * self.host_speed).mean(axis=1)
            gain = means / means[default] - 1
        else:
            means = (self.table.base * (1 - slow + slow / factor) / self.host_speed).mean(axis=1)
            gain = means[default] / means - 1
        p99_ms = (self.p99_ms[:, None] * (1 + 0.5 * slow) / self.host_speed).mean(axis=1)
        limit_ms = float(P99_MARGIN * p99_ms[default])
        crashes = self.crashes.mean(axis=1)
        return Truth(gain, p99_ms, limit_ms, (crashes <= MOST_CRASHES) & (p99_ms <= limit_ms), crashes)


def _drift(source: Generator, columns: int) -> Floats:
    """Slow wandering of the lab (first column) and of each host: the log of its speed, one row for each step."""
    steps = round(24 * DRIFT_DAYS / DRIFT_STEP_HOURS)
    kept = math.exp(-DRIFT_STEP_HOURS / DRIFT_MEMORY_HOURS)
    shocks = source.normal(size=(steps, columns)) * DRIFT_SD * math.sqrt(1 - kept**2)
    found = np.empty_like(shocks)
    found[0] = source.normal(size=columns) * DRIFT_SD
    for step in range(1, steps):
        found[step] = kept * found[step - 1] + shocks[step]
    return found
