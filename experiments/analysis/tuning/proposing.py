"""Which configurations are tried next: spread over the space first, then where the most is to be gained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import qmc

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config, Key, Space, Value

Floats = NDArray[np.float64]

RANDOM, NEAR_EACH, NEAR_BEST = 200, 30, 6
LEAST_WITHIN, LEAST_SURVIVES = 0.02, 0.5


def spread(space: Space, count: int, seed: int) -> list[dict[str, Value]]:
    """So many configurations, evenly over the space: a scrambled Sobol sequence without what is forbidden."""
    source = qmc.Sobol(len(space.parameters), rng=np.random.default_rng([seed, 11]))
    found: list[dict[str, Value]] = []
    for _ in range(8):
        rows = source.random(max(8, 1 << (2 * count - 1).bit_length()))
        found += [config for config in map(space.at, rows) if not space.is_forbidden(config)]
        if len(found) >= count:
            break
    return found[:count]


def candidates(beliefs: Beliefs, best: Sequence[Config], source: Generator) -> list[dict[str, Value]]:
    """New configurations: some at random, some that differ from one of the best in a few parameters."""
    space = beliefs.settings.space
    found = [space.at(row) for row in source.random((RANDOM, len(space.parameters)))]
    for config in best:
        found += [_near(space, config, source) for _ in range(NEAR_EACH)]
    new: dict[Key, dict[str, Value]] = {}
    for config in found:
        key = space.key(config)
        if key not in beliefs.numbers and not space.is_forbidden(config):
            new[key] = config
    return list(new.values())


def _near(space: Space, config: Config, source: Generator) -> dict[str, Value]:
    """One to three parameters changed: a step for a range, any other choice for a choice."""
    found = dict(config)
    count = min(len(space.parameters), int(source.integers(1, 4)))
    for place in source.choice(len(space.parameters), count, replace=False):
        one = space.parameters[place]
        if one.choices:
            found[one.name] = one.choices[int(source.integers(len(one.choices)))]
        else:
            step = one.position(found[one.name]) + source.normal(0, 0.2)
            found[one.name] = one.at(float(np.clip(step, 0.0, 1.0)))
    return found


def promising(beliefs: Beliefs, count: int, source: Generator) -> list[dict[str, Value]]:
    """New configurations by their expected improvement over the best one that is believed to be admissible.

    One after the other, each as if those before it had already been measured (the improvement: Jones, Schonlau and
    Welch 1998; with limits: Gardner and others, 2014).
    """
    known = beliefs.of_known()
    worth = known.speed.mean - (known.within < 0.5) * 10 - (known.survives < 0.5) * 10
    order = np.argsort(-worth, kind="stable")
    new = candidates(beliefs, [beliefs.configs[n] for n in order[:NEAR_BEST]], source)
    if not new:
        return []
    positions = np.concatenate([beliefs.positions[:1], beliefs.settings.space.positions(new)])
    prospect = beliefs.of(positions, np.arange(0, -len(positions), -1))
    allowed = prospect.within * prospect.survives
    allowed[(prospect.survives < LEAST_SURVIVES) | (prospect.within < LEAST_WITHIN)] = 0.0
    allowed[0] = 0.0
    mean, covariance = prospect.speed.mean, prospect.speed.covariance.copy()
    noise = beliefs.noise_sd**2
    level = max(0.0, float(worth.max()))
    chosen: list[dict[str, Value]] = []
    for _ in range(min(count, len(new))):
        sd = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
        z = (mean - level) / sd
        gain = sd * (z * ndtr(z) + np.exp(-z * z / 2) / np.sqrt(2 * np.pi)) * allowed
        best = int(np.argmax(gain))
        chosen.append(new[best - 1])
        allowed[best] = 0.0
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (covariance[best, best] + noise)
    return chosen
