"""What docs/bisect.md promises: how often the first bad commit is named, and in how many pairs of runs.

Each step is decided by the code that stops a step's experiment, reads its verdict and chooses the next candidate.
"""

from __future__ import annotations

import math

import numpy as np

from bench.simulations.figures import Aim, Section
from experiments.analysis.bisection import Compare, FirstBad, Step, decide, result_of
from experiments.analysis.sequential import LOOKS, StopRule, standing_of

COMMITS = 16
LOSS_RATIO, NOISE_RATIO, MARGIN_RATIO = 0.05, 0.02, 0.03
MOST_PAIRS = 12 * 5
RULE = StopRule("until_not_worse")
CASES = ((0.0, 0.880), (0.02, 0.780))
"""How much faster the good ones after the first are, and what was named within the pairs when they had to be alike."""


def bisections(rng: np.random.Generator, trials: int) -> list[Aim]:
    """A loss of 5 % at 2 % noise among 16 commits: named, and in at most 12 x 5 pairs."""
    found = []
    for faster, before in CASES:
        named = within = pairs = 0
        for _ in range(trials):
            first_bad = int(rng.integers(1, COMMITS))
            is_named, took = bisect_once(rng, first_bad, faster)
            named += is_named
            within += is_named and took <= MOST_PAIRS
            pairs += took
        what = f"{LOSS_RATIO:.0%} loss among {COMMITS}, the good ones {faster:.0%} faster"
        found += [
            Aim(f"{what}: named in at most {MOST_PAIRS} pairs", within / trials, 0.90, "at least", before),
            Aim(f"{what}: named", named / trials, 0.90, "at least"),
            Aim(f"{what}: mean pairs", pairs / trials, MOST_PAIRS, "at most"),
        ]
    return found


def bisect_once(rng: np.random.Generator, first_bad: int, faster: float) -> tuple[bool, int]:
    """Whether one bisection names the first bad one, and the pairs of runs that it took."""
    steps: list[Step] = []
    pairs = 0
    while isinstance(following := decide(COMMITS, steps), Compare):
        change = math.log1p(-LOSS_RATIO) if following.index >= first_bad else math.log1p(faster)
        good = np.exp(rng.normal(0.0, NOISE_RATIO, LOOKS[-1]))
        asked = np.exp(rng.normal(change, NOISE_RATIO, LOOKS[-1]))
        blocks = LOOKS[0]
        while True:
            standing = standing_of(
                RULE,
                list(good[:blocks]),
                list(asked[:blocks]),
                higher_is_better=True,
                margin_ratio=MARGIN_RATIO,
                spent=blocks == LOOKS[-1],
            )
            if standing.next_blocks is None or blocks == LOOKS[-1]:
                break
            blocks = standing.next_blocks
        pairs += blocks
        result = result_of(standing.verdict.outcome, is_not_worse=standing.verdict.not_worse)
        steps.append(Step(following.index, result))
    return following == FirstBad(first_bad), pairs


SECTIONS: tuple[Section, ...] = (Section("Bisection", bisections, 0.3),)
