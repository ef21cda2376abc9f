"""Which configurations are tried next: spread over the space first, then where the most is to be gained.

The course and its sources: docs/tuning.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from experiments.analysis.distributions import normal_shares, sobol
from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config, Key, Space, Value

Floats = NDArray[np.float64]

MOST_SPREAD_TRIES = 8
KEPT_SHARE = 0.5
"""Every other one of the first configurations keeps this share of the default's values."""
RANDOM, NEAR_EACH, NEAR_BEST, CROSSED = 150, 20, 6, 120
"""Candidates of one round: so many at random, near each of the best, and between two of the parents."""
PARENTS_ABLE, LEAST_OF_ONE = 3, 0.2
"""Parents that keep the limits, beside the fastest ones of all; the least share that is taken of either of two."""
WIDE_STEP, NARROW_DECADES = 0.3, 1.0
"""Steps near the best, as fractions of a range: from a tenth of the wide one up to it."""
LEAST_WITHIN, LEAST_SURVIVES, ABLE = 0.02, 0.5, 0.5
CAUTION = 1.5
"""Power of the probability to survive: a crash teaches less than a figure."""
MOVED_POWER = 0.5
HOPELESS_LOG = 5.0
LEAST_IMPROVEMENT = 1e-4
"""What is expected to bring less, as a log, is not proposed."""


def spread(space: Space, default: Config, count: int, seed: int) -> list[dict[str, Value]]:
    """So many configurations, evenly over the space: two scrambled Sobol sequences that take turns, without the default
    and the forbidden.

    Those of the second one keep about half of the default's values. A default runs and keeps its limits, which far from
    it few configurations do; and where a leap takes few parameters, the others are in its way. None comes twice, and
    there are fewer when hardly anything is allowed.
    """
    whole, part = (sobol(len(space.parameters), seed=[seed, number]) for number in (11, 13))
    source = np.random.default_rng([seed, 12])
    found: dict[Key, dict[str, Value]] = {}
    for _ in range(MOST_SPREAD_TRIES):
        rows = max(8, 1 << (count - 1).bit_length())
        chances = source.random((rows, len(space.parameters)))
        for far, near, chance in zip(whole(rows), part(rows), chances, strict=True):
            kept = [one.name for one, value in zip(space.parameters, chance, strict=True) if value < KEPT_SHARE]
            for drawn in (space.at(far), space.at(near) | {name: default[name] for name in kept}):
                config = space.settled(drawn, default)
                if not space.is_forbidden(config):
                    found.setdefault(space.key(config), config)
        found.pop(space.key(default), None)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def candidates(
    beliefs: Beliefs, best: Sequence[Config], fastest: Sequence[Config], source: Generator
) -> list[dict[str, Value]]:
    """New configurations: some at random, some near one of the best, some between two of those known.

    `best` are those that keep the limits and survive, `fastest` those that need not. What breaks a limit or crashes
    may do so by a few parameters, and be fast by others: what lies between it and the default has one without the
    other.
    """
    space = beliefs.settings.space
    found = [space.at(row) for row in source.random((RANDOM, len(space.parameters)))]
    for config in best:
        found += [_near(space, config, source) for _ in range(NEAR_EACH)]
    among = (beliefs.settings.default, *best[:PARENTS_ABLE], *fastest)
    parents = list({space.key(config): config for config in among}.values())
    if len(parents) > 1:
        found += [_between(space, parents, source) for _ in range(CROSSED)]
    new: dict[Key, dict[str, Value]] = {}
    for drawn in found:
        config = space.settled(drawn, beliefs.settings.default)
        key = space.key(config)
        if key not in beliefs.numbers and not space.is_forbidden(config):
            new[key] = config
    return list(new.values())


def newness(beliefs: Beliefs, positions: Floats) -> Floats:
    """The probability that a host applies a configuration as something that did not run yet, one for each row.

    `positions` has one row for each configuration, as of Space.positions: fractions of the ranges.

    Hosts may round what is asked, or know certain configurations only. Nothing that could be applied lies nearer to
    what was asked than what was applied then: around every question so far is a ball without anything new. A candidate
    counts by the part of its way to the nearest configuration that ran which leads out of these balls, and by how
    often questions were moved by no more than that way.
    """
    space = beliefs.settings.space
    explored = [one for one in beliefs.trials if one.purpose == "explore"]
    if not explored or len(positions) == 0:
        return np.ones(len(positions))
    asked = space.positions([one.asked or one.config for one in explored])
    applied = space.positions([one.config for one in explored])
    moved = _distance(asked, applied, beliefs.unordered)
    if not moved.any():
        return np.ones(len(positions))
    nearest = _distance(positions[:, None], beliefs.positions[None, :], beliefs.unordered).min(axis=1)
    inside = moved[None, :] - _distance(positions[:, None], asked[None, :], beliefs.unordered)
    outside = 1 - np.clip(inside.max(axis=1) / np.maximum(nearest, 1e-9), 0.0, 1.0)
    usual = np.searchsorted(np.sort(moved), nearest - 1e-9, side="right") / len(moved)
    return np.asarray(outside * usual**MOVED_POWER)


def _distance(a: Floats, b: Floats, unordered: NDArray[np.bool_]) -> Floats:
    """The sum over the last axis: fractions of the ranges, 1 for each choice that differs."""
    return np.asarray(np.where(unordered, a != b, np.abs(a - b)).sum(axis=-1))


def _near(space: Space, config: Config, source: Generator) -> dict[str, Value]:
    """One to three parameters changed: a step for a range, any other choice for a choice."""
    found = dict(config)
    count = min(len(space.parameters), int(source.integers(1, 4)))
    for place in source.choice(len(space.parameters), count, replace=False):
        one = space.parameters[place]
        if one.choices:
            found[one.name] = one.choices[int(source.integers(len(one.choices)))]
        else:
            step = one.position(found[one.name]) + source.normal(
                0, WIDE_STEP * 10 ** -source.uniform(0, NARROW_DECADES)
            )
            found[one.name] = one.at(float(np.clip(step, 0.0, 1.0)))
    return found


def _between(space: Space, parents: Sequence[Config], source: Generator) -> dict[str, Value]:
    """Each value from one of two parents, at random (uniform crossover: Syswerda 1989)."""
    one, other = source.choice(len(parents), 2, replace=False)
    of_one = source.random(len(space.parameters)) < source.uniform(LEAST_OF_ONE, 1 - LEAST_OF_ONE)
    pairs = zip(space.parameters, of_one, strict=True)
    return {each.name: parents[one if first else other][each.name] for each, first in pairs}


def expected_excess(beliefs: Beliefs, source: Generator) -> float:
    """By how much a configuration, tried or new, is expected to gain more than the margin, where that is the most.

    It is a log of a ratio of speeds: as far as limits hold and nothing crashes, and 0 for what gains less than the
    margin.
    """
    positions, numbers, _ = _considered(beliefs, source)
    prospect = beliefs.of(positions, numbers)
    above = prospect.speed.mean - math.log1p(beliefs.settings.margin_ratio)
    excess = expected_above(above, prospect.speed.sd) * prospect.within * prospect.survives
    return float(excess[1:].max(initial=0.0))


def expected_above(mean: Floats, sd: Floats) -> Floats:
    """The mean of the part above 0 of values with normal distributions.

    `mean` and `sd` have one entry for each value and the same unit, which what is returned has, too.
    """
    z = mean / sd
    return np.asarray(sd * (z * normal_shares(z) + np.exp(-z * z / 2) / math.sqrt(2 * math.pi)))


def _considered(beliefs: Beliefs, source: Generator) -> tuple[Floats, NDArray[np.int64], list[dict[str, Value]]]:
    """Positions and numbers of all configurations that ran and of new candidates, and these."""
    known = beliefs.of_known()
    ran = len(beliefs.configs)
    worth = np.where((known.within < ABLE) | (known.survives < ABLE), -np.inf, known.speed.mean)
    measured = np.array([bool(beliefs.measured(number)) for number in range(ran)])
    best = _fastest(beliefs, worth)
    fastest = _fastest(beliefs, np.where(measured, known.speed.mean, -np.inf))
    new = candidates(beliefs, best, fastest, source)
    positions = np.concatenate([beliefs.positions, beliefs.settings.space.positions(new)]) if new else beliefs.positions
    return positions, np.concatenate([np.arange(ran), -np.arange(1, len(new) + 1)]), new


def _fastest(beliefs: Beliefs, speeds: Floats) -> list[Config]:
    """The first ones by these speeds, one for each configuration that ran; those at minus infinity do not count."""
    order = np.argsort(-speeds, kind="stable")[:NEAR_BEST]
    return [beliefs.configs[number] for number in order if speeds[number] > -np.inf]


@dataclass(frozen=True)
class Proposal:
    """A configuration to be run, new or known."""

    config: Config
    is_new: bool


def promising(beliefs: Beliefs, count: int, source: Generator) -> list[Proposal]:
    """Runs by how much the best configuration is expected to improve through each; one that ran may come again.

    One after the other, each as if those before it had already been measured. The improvement counts as far as the
    noise of one run lets it be seen, and as far as limits hold and nothing crashes (expected improvement: Jones,
    Schonlau and Welch 1998; with noise: Frazier, Powell and Dayanik 2009; with limits: Gardner and others 2014).
    """
    ran = len(beliefs.configs)
    positions, numbers, new = _considered(beliefs, source)
    prospect = beliefs.of(positions, numbers)
    allowed = prospect.within * prospect.survives**CAUTION
    allowed[(prospect.survives < LEAST_SURVIVES) | (prospect.within < LEAST_WITHIN)] = 0.0
    allowed[ran:] *= newness(beliefs, positions[ran:])
    allowed[0] = 0.0
    mean, covariance = prospect.speed.mean, prospect.speed.covariance.copy()
    noise = beliefs.noise_sd**2
    able = np.where((prospect.within < ABLE) | (prospect.survives < ABLE), -np.inf, mean)
    able[ran:] = -np.inf
    able[0] = 0.0
    best, second = np.sort(able)[::-1][:2] if len(able) > 1 else (0.0, 0.0)
    rival = np.where(able == best, max(second, best - HOPELESS_LOG), best)
    chosen: list[Proposal] = []
    for _ in range(count):
        variance = np.maximum(np.diag(covariance), 1e-12)
        sd = variance / np.sqrt(variance + noise)
        gain = expected_above(-np.abs(mean - rival), sd) * allowed
        gain[ran:] += np.maximum(mean[ran:] - rival[ran:], 0.0) * allowed[ran:]
        pick = int(np.argmax(gain))
        if gain[pick] < LEAST_IMPROVEMENT:
            break
        chosen.append(Proposal(new[pick - ran], True) if pick >= ran else Proposal(beliefs.configs[pick], False))
        column = covariance[:, pick]
        covariance = covariance - np.outer(column, column) / (covariance[pick, pick] + noise)
        if pick >= ran:
            allowed[pick] = 0.0
    return chosen
