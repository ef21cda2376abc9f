"""Made-up systems, unlike each other on purpose; the seed decides their effects as well as their lab."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bench.tuning.world import REGION_CRASHES, USUAL_CRASHES, Table
from experiments.analysis.tuning.space import Parameter, Space, Value

Floats = NDArray[np.float64]
HOSTS, POOL_HOSTS = 6, 10


def numeric(count: int, *, log_every: int = 2) -> tuple[Parameter, ...]:
    """Ranges; every other one by orders of magnitude."""
    return tuple(
        Parameter(f"size_{n}", "integer", low=1, high=10_000, log=True)
        if n % log_every == 0
        else Parameter(f"ratio_{n}", "number", low=0.0, high=1.0)
        for n in range(count)
    )


def switches(count: int) -> tuple[Parameter, ...]:
    return tuple(Parameter(f"switch_{n}", "switch", (False, True)) for n in range(count))


def choices(*sizes: int) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(f"choice_{n}", "choice", tuple(f"kind{k}" for k in range(size))) for n, size in enumerate(sizes)
    )


def complete(parameters: tuple[Parameter, ...]) -> list[dict[str, Value]]:
    """Every combination of the choices."""
    names = [one.name for one in parameters]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(one.choices for one in parameters))]


def some(source: Generator, parameters: tuple[Parameter, ...], count: int) -> list[dict[str, Value]]:
    """So many combinations, at random."""
    space = Space(parameters)
    return [space.at(source.random(len(parameters))) for _ in range(count)]


def made(
    name: str,
    source: Generator,
    parameters: tuple[Parameter, ...],
    configs: list[dict[str, Value]],
    log_speed: Callable[[Floats], Floats],
    *,
    noise: tuple[float, float],
    default_quantile: float,
    hosts: int = HOSTS,
) -> Table:
    """A table from the log of the speed of each row of features.

    `default_quantile`: how good the default is among all, 0 to 1. `noise`: the range of the relative standard
    deviation from run to run.
    """
    higher_is_better = bool(source.random() < 0.5)
    table = Table(name, Space(parameters), tuple(configs), 0, higher_is_better, np.ones((1, hosts)), np.ones(1))
    speed = log_speed(table.features)
    default = int(np.argsort(speed)[int(default_quantile * (len(speed) - 1))])
    gain = speed - speed[default]
    means = 1000.0 * np.exp(gain if higher_is_better else -gain)
    noise_ratio = np.exp(source.uniform(np.log(noise[0]), np.log(noise[1]), len(configs)))
    base = np.repeat(means[:, None], hosts, axis=1)
    return replace(table, default=default, base=base, noise_ratio=noise_ratio)


def smooth(name: str, source: Generator) -> Table:
    """Six ranges, each with its best place, two of them together."""
    parameters = numeric(6)
    best, depth = source.uniform(0.1, 0.9, 6), source.dirichlet(np.ones(6)) * source.uniform(0.8, 1.8)

    def log_speed(x: Floats) -> Floats:
        away = x - best
        return np.asarray(-(away**2) @ depth - depth.max() * away[:, 0] * away[:, 3])

    return made(
        name,
        source,
        parameters,
        some(source, parameters, 2500),
        log_speed,
        noise=(0.02, 0.05),
        default_quantile=source.uniform(0.3, 0.7),
    )


def categorical(name: str, source: Generator) -> Table:
    """Choices and switches; what one choice brings depends a little on another."""
    parameters = choices(5, 4, 3, 3) + switches(3)

    def log_speed(x: Floats) -> Floats:
        main = x @ (source.normal(size=x.shape[1]) * source.choice([0.02, 0.05, 0.3], x.shape[1]))
        pairs = sum(source.normal(0, 0.1) * x[:, a] * x[:, b] for a, b in source.integers(x.shape[1], size=(6, 2)))
        return np.asarray(main + pairs)

    return made(
        name,
        source,
        parameters,
        complete(parameters),
        log_speed,
        noise=(0.03, 0.06),
        default_quantile=source.uniform(0.4, 0.8),
    )


def interacting(name: str, source: Generator) -> Table:
    """Ten switches of which pairs and triples work together, some against each other."""
    parameters = switches(10)

    def log_speed(x: Floats) -> Floats:
        total = x @ (source.normal(size=10) * 0.04)
        for size, deviation in ((2, 0.12), (2, 0.12), (2, 0.08), (3, 0.15)):
            together = source.choice(10, size, replace=False)
            total = total + source.normal(0, deviation) * np.prod(2 * x[:, together] - 1, axis=1)
        return np.asarray(total)

    return made(
        name,
        source,
        parameters,
        complete(parameters),
        log_speed,
        noise=(0.02, 0.05),
        default_quantile=source.uniform(0.3, 0.7),
    )


def wide(name: str, source: Generator) -> Table:
    """Twenty parameters, four of them matter, and the most that can be gained is little."""
    parameters = numeric(6) + switches(10) + choices(4, 3, 3, 5)

    def log_speed(x: Floats) -> Floats:
        columns = source.choice(x.shape[1], 4, replace=False)
        return np.asarray(np.tanh(2 * (x[:, columns] - 0.4)) @ source.normal(0, 0.05, 4))

    return made(
        name,
        source,
        parameters,
        some(source, parameters, 4000),
        log_speed,
        noise=(0.015, 0.03),
        default_quantile=0.5,
    )


def well_set(name: str, source: Generator) -> Table:
    """A default that somebody has chosen well: most of what can be tried is much worse."""
    parameters = numeric(5) + switches(3)

    def log_speed(x: Floats) -> Floats:
        away = np.abs(x - source.uniform(0.2, 0.8, x.shape[1])) * (x.std(axis=0) < 0.4)
        return np.asarray(-(away**1.5) @ source.uniform(0.1, 0.9, x.shape[1]) + x[:, 5:] @ source.normal(0, 0.04, 3))

    return made(
        name,
        source,
        parameters,
        some(source, parameters, 2500),
        log_speed,
        noise=(0.02, 0.04),
        default_quantile=source.uniform(0.9, 0.97),
    )


def walked(source: Generator, parameters: tuple[Parameter, ...], speed: Callable[[Floats], Floats]) -> list[Floats]:
    """Positions of what ten tuners tried: each ten at random, then sixteen near the best it had seen."""
    found: list[Floats] = []
    for _ in range(10):
        mine = [source.random(len(parameters)) for _ in range(10)]
        for _ in range(16):
            values = speed(np.array(mine)) + source.normal(0, 0.05, len(mine))
            here = mine[int(np.argmax(values))].copy()
            changed = source.choice(len(parameters), int(source.integers(1, 4)), replace=False)
            here[changed] = np.clip(here[changed] + source.normal(0, 0.15, len(changed)), 0, 1)
            mine.append(here)
        found += mine
    return found


def steep(name: str, source: Generator, *, crashing: bool = True, hidden_sd: float = 0.15) -> Table:
    """Few configurations of many parameters, of which only twelve are seen; gains of several times the default.

    Each host answers a configuration in its own way, some of them very differently; a fifth crashes, partly for
    reasons that are not seen.
    """
    parameters = numeric(6) + switches(4) + choices(3, 4)
    heights, where = source.normal(0, source.uniform(0.2, 0.9), 5), source.uniform(0.2, 0.8, 5)
    columns = source.choice(len(parameters), 5, replace=False)

    def seen_speed(fractions: Floats) -> Floats:
        """Cliffs; the last one stands only above the first one."""
        steps = fractions[:, columns] > where
        steps[:, 4] &= steps[:, 0]
        return np.asarray(steps @ heights)

    fractions = walked(source, parameters, seen_speed)
    configs = [Space(parameters).at(row) for row in fractions]

    def log_speed(x: Floats) -> Floats:
        return np.asarray(seen_speed(np.array(fractions)) + source.normal(0, hidden_sd, len(x)))

    table = made(
        name,
        source,
        parameters,
        configs,
        log_speed,
        noise=(0.015, 0.02),
        default_quantile=source.uniform(0.4, 0.8),
        hosts=POOL_HOSTS,
    )
    by_host = source.normal(0, 0.02, table.base.shape)
    by_host += (source.random(len(configs)) < 0.15)[:, None] * source.normal(0, 0.15, table.base.shape)
    by_host[table.default] = 0.0
    crashes = np.full(table.base.shape, USUAL_CRASHES)
    if crashing:
        columns = source.choice(table.features.shape[1], 2, replace=False)
        risk = table.features[:, columns] @ source.normal(size=2) + source.normal(0, 0.3, len(configs))
        risk[table.default] = -np.inf
        crashes[np.argsort(-risk)[: len(configs) // 5]] = REGION_CRASHES
    return replace(table, base=table.base * np.exp(by_host), crashes=crashes, makes_unstable=False)


def steep_metal(name: str, source: Generator) -> Table:
    """As steep, on machines that answer alike and never crash."""
    return steep(name, source, crashing=False, hidden_sd=0.05)


def null_of(build: Callable[[str, Generator], Table]) -> Callable[[str, Generator], Table]:
    """The same system with every mean equal to the default's."""

    def nothing_to_gain(name: str, source: Generator) -> Table:
        table = build(name, source)
        level = table.base[table.default].mean()
        return replace(table, base=np.full(table.base.shape, level))

    return nothing_to_gain


SYNTHETIC: dict[str, Callable[[str, Generator], Table]] = {
    "smooth": smooth,
    "categorical": categorical,
    "interacting": interacting,
    "wide": wide,
    "well_set": well_set,
    "steep": steep,
    "steep_metal": steep_metal,
    "null_smooth": null_of(smooth),
    "null_categorical": null_of(categorical),
    "null_interacting": null_of(interacting),
}


def synthetic(name: str, seed: int) -> Table:
    """The system of this name and seed."""
    return SYNTHETIC[name](name, np.random.default_rng([zlib.crc32(name.encode()), seed, 3]))
