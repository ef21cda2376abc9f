"""What docs/search.md promises of the rate search: coverage, large errors under hiccups, and the trials that it takes.

The server's capacity is 100,000 requests/s and differs from trial to trial by the noise; a hiccup lets a trial fail
whatever its rate. The searches start from two rates around 20,000 and 200,000 requests/s.
"""

from __future__ import annotations

import math

import numpy as np

from bench.simulations.figures import Aim, Section
from experiments.analysis.search import Found, SearchSettings, Trial, TryRate, decide
from experiments.analysis.search_limit import COVERAGE

CAPACITY_RPS, LOW_RPS, HIGH_RPS = 100_000.0, 20_000.0, 200_000.0
FAR_OFF_RATIO = 0.20
MOST_OFF_RATIO = 0.02
MEAN_TRIALS = 24.0
BEFORE = {
    (0.02, 0.01, 0.0): (0.662, 0.0),
    (0.04, 0.02, 0.0): (0.65, 0.0),
    (0.02, 0.01, 0.05): (0.52, 0.104),
    (0.02, 0.02, 0.0): (0.437, 0.0),
}
"""By width, noise and hiccups: coverage and large errors of 1,000 searches that voted on the last rates only."""
CASES = ((0.02, 0.01, 0.0), (0.04, 0.02, 0.0), (0.02, 0.005, 0.0), (0.02, 0.01, 0.05), (0.04, 0.02, 0.05))
TOO_NARROW = (0.02, 0.02, 0.0)
"""A width that the documents advise against, for the noise is as large."""


def searches(rng: np.random.Generator, searched: int) -> list[Aim]:
    """Coverage of the answer at the documented widths, how many are far off, and the mean number of trials."""
    found = []
    for width, noise, hiccups in (*CASES, TOO_NARROW):
        held = far = trials = 0
        for _ in range(searched):
            answer = search_once(rng, width, noise, hiccups)
            trials += answer.trials
            held += answer.low_rps <= CAPACITY_RPS <= answer.high_rps
            far += abs(math.sqrt(answer.low_rps * answer.high_rps) / CAPACITY_RPS - 1) > FAR_OFF_RATIO
        name = f"width {width:.1%}, noise {noise:.1%}, hiccups in {hiccups:.0%} of trials"
        least = 0.7 if (width, noise, hiccups) == TOO_NARROW else COVERAGE
        covered, off = BEFORE.get((width, noise, hiccups), (None, None))
        found += [
            Aim(f"{name}: holds the limit", held / searched, least, "at least", covered),
            Aim(f"{name}: off by more than {FAR_OFF_RATIO:.0%}", far / searched, MOST_OFF_RATIO, "at most", off),
            Aim(f"{name}: trials", trials / searched, MEAN_TRIALS, "at most", 14.5),
        ]
    return found


def search_once(rng: np.random.Generator, width: float, noise: float, hiccups: float) -> Found:
    """One search by the code that decides real ones. RuntimeError: it ended without an answer."""
    low, high = LOW_RPS * rng.uniform(0.7, 1.4), HIGH_RPS * rng.uniform(0.7, 1.4)
    settings = SearchSettings(low, high, width, step_rps=1.0)
    trials: list[Trial] = []
    while isinstance(step := decide(settings, trials), TryRate):
        capacity = CAPACITY_RPS * math.exp(rng.normal(0.0, noise))
        passed = step.rate_rps <= capacity and rng.random() >= hiccups
        trials.append(Trial(step.rate_rps, "pass" if passed else "fail"))
    if not isinstance(step, Found):
        raise RuntimeError(step.sentence)
    return step


SECTIONS: tuple[Section, ...] = (Section("Rate search", searches, 0.2),)
