"""What looks best while a search goes on: selected among many, so optimistic, and never a claim (docs/tuning.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config
from experiments.analysis.tuning.trials import Settings, Trial

LIKELY = 0.5
WIDTH_SDS = 1.96


@dataclass(frozen=True)
class Best:
    """The configuration that looks best, its gain over the default as a ratio with what the model believes of it.

    `within` is the probability that the limits hold, `runs` how many of its runs were measured.
    """

    config: Config
    gain: float
    low: float
    high: float
    within: float
    runs: int


def best_so_far(settings: Settings, trials: Sequence[Trial]) -> Best | None:
    """The configuration that looks best after these trials; None before one that may be recommended was measured."""
    controls = [one for one in trials if one.status == "ok" and settings.space.key(one.config) == settings.default_key]
    if not controls or sum(one.status == "ok" for one in trials) < 4:
        return None
    beliefs = Beliefs(settings, trials)
    known = beliefs.of_known()
    able = (known.within >= LIKELY) & (known.survives >= LIKELY)
    able &= np.array([bool(beliefs.measured(number)) for number in range(len(beliefs.configs))])
    able[0] = False
    if not able.any():
        return None
    number = int(np.argmax(np.where(able, known.speed.mean, -np.inf)))
    mean, half = float(known.speed.mean[number]), WIDTH_SDS * float(known.speed.sd[number])
    low, gain, high = (math.expm1(one) for one in (mean - half, mean, mean + half))
    return Best(beliefs.configs[number], gain, low, high, float(known.within[number]), len(beliefs.measured(number)))
