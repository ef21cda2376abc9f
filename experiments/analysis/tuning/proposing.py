"""Which configurations are tried next: spread over the space first, then where the most is to be gained.

The course and its sources: docs/tuning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from experiments.analysis.distributions import normal_shares
from experiments.analysis.tuning.beliefs import Beliefs, Prospect
from experiments.analysis.tuning.candidates import candidates, near, new_of
from experiments.analysis.tuning.space import Config, Value

Floats = NDArray[np.float64]

NEAR_BEST, CLIMBS, CLIMBING, STEPS_EACH, MOST_NEW = 6, 2, 6, 12, 150
"""Of one round: the best that candidates are near to; how often, from how many and with how many steps from each the
expected gain is climbed; and new configurations that are compared at last."""
LEAST_WITHIN, LEAST_SURVIVES, ABLE = 0.02, 0.5, 0.5
CAUTION = 1.5
"""Power of the probability to survive: a crash teaches less than a figure."""
MOVED_POWER = 0.5
HOPELESS_LOG = 5.0


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


def chance_of_margin(beliefs: Beliefs, source: Generator) -> float:
    """The probability that a gain beyond the margin, within the limits, is where it is most likely."""
    considered = _Considered(beliefs, _candidates(beliefs, source))
    prospect = considered.prospect
    above = (prospect.speed.mean - math.log1p(beliefs.settings.margin_ratio)) / prospect.speed.sd
    chance = normal_shares(above) * prospect.within * prospect.survives
    return float(chance[1:].max(initial=0.0))


def _candidates(beliefs: Beliefs, source: Generator) -> list[dict[str, Value]]:
    known = beliefs.of_known()
    worth = np.where((known.within < ABLE) | (known.survives < ABLE), -np.inf, known.speed.mean)
    order = [int(number) for number in np.argsort(-worth, kind="stable") if number != 0]
    good = [beliefs.configs[number] for number in order[:NEAR_BEST]]
    settings = beliefs.settings
    return candidates(settings.space, settings.default, good, set(beliefs.numbers), source)


class _Considered:
    """All configurations that ran, and new ones, with what a run of each is expected to bring."""

    def __init__(self, beliefs: Beliefs, new: list[dict[str, Value]]) -> None:
        self.beliefs, self.new, self.ran = beliefs, new, len(beliefs.configs)
        positions = beliefs.settings.space.positions(new) if new else np.empty((0, beliefs.positions.shape[1]))
        numbers = np.concatenate([np.arange(self.ran), -np.arange(1, len(new) + 1)])
        self.prospect = beliefs.of(np.concatenate([beliefs.positions, positions]), numbers)
        self.allowed = _allowed(self.prospect)
        self.allowed[self.ran :] *= newness(beliefs, positions)
        mean = self.prospect.speed.mean
        able = np.where((self.prospect.within < ABLE) | (self.prospect.survives < ABLE), -np.inf, mean)
        able[self.ran :] = -np.inf
        able[0] = 0.0
        best, second = np.sort(able)[::-1][:2] if self.ran > 1 else (0.0, -HOPELESS_LOG)
        self.rival = np.where(able == best, max(second, best - HOPELESS_LOG), best)

    def gains(self, variance: Floats) -> Floats:
        """The improvement of the best that one run of each brings, with these variances; one entry for each."""
        mean, rival = self.prospect.speed.mean, self.rival
        variance = np.maximum(variance, 1e-12)
        sd = variance / np.sqrt(variance + self.beliefs.noise_sd**2)
        z = -np.abs(mean - rival) / sd
        gain = sd * (z * normal_shares(z) + np.exp(-z * z / 2) / np.sqrt(2 * np.pi)) * self.allowed
        fresh = slice(self.ran, None)
        gain[fresh] += np.maximum(mean[fresh] - rival[fresh], 0.0) * self.allowed[fresh]
        return np.asarray(gain)

    def best_new(self, count: int) -> list[dict[str, Value]]:
        """So many of the new configurations, from which the most is expected."""
        gains = self.gains(self.prospect.speed.sd**2)[self.ran :]
        return [self.new[place] for place in np.argsort(-gains, kind="stable")[:count]]


def _allowed(prospect: Prospect) -> Floats:
    """The probability that each may be recommended; 0 for the default and for what is hopeless."""
    allowed = prospect.within * prospect.survives**CAUTION
    allowed[(prospect.survives < LEAST_SURVIVES) | (prospect.within < LEAST_WITHIN)] = 0.0
    allowed[0] = 0.0
    return np.asarray(allowed)


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
    if count <= 0:
        return []
    considered = _climbed(beliefs, source)
    covariance = considered.prospect.speed.covariance.copy()
    noise, ran = beliefs.noise_sd**2, considered.ran
    chosen: list[Proposal] = []
    for _ in range(count):
        gain = considered.gains(np.diag(covariance))
        pick = int(np.argmax(gain))
        if gain[pick] <= 0:
            break
        is_new = pick >= ran
        chosen.append(Proposal(considered.new[pick - ran] if is_new else beliefs.configs[pick], is_new))
        column = covariance[:, pick]
        covariance = covariance - np.outer(column, column) / (covariance[pick, pick] + noise)
        if is_new:
            considered.allowed[pick] = 0.0
    return chosen


def _climbed(beliefs: Beliefs, source: Generator) -> _Considered:
    """Candidates, and around the best of them steps to where still more is expected."""
    space, known = beliefs.settings.space, set(beliefs.numbers)
    considered = _Considered(beliefs, _candidates(beliefs, source))
    for _ in range(CLIMBS):
        kept = considered.best_new(MOST_NEW)
        steps = [near(space, config, source) for config in kept[:CLIMBING] for _ in range(STEPS_EACH)]
        considered = _Considered(beliefs, new_of(space, [*kept, *steps], known))
    return considered
