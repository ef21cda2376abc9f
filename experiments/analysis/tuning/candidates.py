"""Where a search may look next: over the whole space, near the default, near the best, and between good ones.

Gains are often near the default: somebody has chosen most of its values well, and some of them stand at the edge of
their range, where nothing that is spread over the space comes (docs/tuning.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from experiments.analysis.distributions import sobol
from experiments.analysis.tuning.space import Config, Key, Space, Value

MOST_SPREAD_TRIES = 8
RANDOM, NEAR_DEFAULT, NEAR_EACH, MIXED = 100, 60, 16, 40
"""Candidates of one round: over the space, with a part of the default changed, near each good one, between two."""
MOST_CHANGED = 3
WIDE_STEP, NARROW_DECADES = 0.3, 1.5
"""Steps near a configuration, as fractions of a range: the wide one, and down by so many orders of magnitude."""
FAR_RATIO = 0.5
"""So many of the changes of a parameter take any value of its range, and the others a step."""


def spread(space: Space, default: Config, count: int, seed: int) -> list[dict[str, Value]]:
    """So many configurations: a scrambled Sobol sequence, of which every other one keeps a part of the default.

    The default itself and what is forbidden are left out; there are fewer when hardly anything is allowed.
    """
    more = sobol(len(space.parameters), seed=[seed, 11])
    source = np.random.default_rng([seed, 13])
    found: list[dict[str, Value]] = []
    is_near = False
    for _ in range(MOST_SPREAD_TRIES):
        for row in more(max(8, 1 << (2 * count - 1).bit_length())):
            config = space.at(row)
            changed = _some_of(space, source, len(space.parameters))
            if is_near:
                config = {**default, **{name: config[name] for name in changed}}
            if not space.is_forbidden(config) and space.key(config) != space.key(default):
                found.append(config)
                is_near = not is_near
        if len(found) >= count:
            break
    return found[:count]


def candidates(
    space: Space, default: Config, good: Sequence[Config], known: set[Key], source: Generator
) -> list[dict[str, Value]]:
    """New configurations for one round; `good` are the best that ran, `known` the keys of all that ran."""
    found = [space.at(row) for row in source.random((RANDOM, len(space.parameters)))]
    found += [near(space, default, source, most=len(space.parameters)) for _ in range(NEAR_DEFAULT)]
    for config in good:
        found += [near(space, config, source) for _ in range(NEAR_EACH)]
    parents = [default, *good]
    for _ in range(MIXED if len(parents) > 1 else 0):
        first, second = source.choice(len(parents), 2, replace=False)
        found.append(_between(space, parents[first], parents[second], source))
    return new_of(space, found, known)


def new_of(space: Space, configs: Sequence[dict[str, Value]], known: set[Key]) -> list[dict[str, Value]]:
    """Those that may be tried and did not run, each once."""
    new: dict[Key, dict[str, Value]] = {}
    for config in configs:
        key = space.key(config)
        if key not in known and not space.is_forbidden(config):
            new[key] = config
    return list(new.values())


def near(space: Space, config: Config, source: Generator, *, most: int = MOST_CHANGED) -> dict[str, Value]:
    """The configuration with some parameters changed, `most` of them at most and few of them as a rule."""
    found = dict(config)
    for name in _some_of(space, source, most):
        one = next(each for each in space.parameters if each.name == name)
        if one.choices:
            found[name] = one.choices[int(source.integers(len(one.choices)))]
        elif source.random() < FAR_RATIO:
            found[name] = one.at(float(source.random()))
        else:
            size = WIDE_STEP * 10 ** -source.uniform(0, NARROW_DECADES)
            found[name] = one.at(float(np.clip(one.position(found[name]) + source.normal(0, size), 0.0, 1.0)))
    return found


def _between(space: Space, first: Config, second: Config, source: Generator) -> dict[str, Value]:
    """Each value of one of the two."""
    return {
        one.name: first[one.name] if take else second[one.name]
        for one, take in zip(space.parameters, source.random(len(space.parameters)) < 0.5, strict=True)
    }


def _some_of(space: Space, source: Generator, most: int) -> list[str]:
    """Names of one to `most` parameters, as often one as all orders of magnitude up to `most`."""
    count = min(len(space.parameters), round(max(1, most) ** source.random()))
    return [space.parameters[place].name for place in source.choice(len(space.parameters), count, replace=False)]
