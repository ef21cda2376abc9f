"""What docs/verdicts.md promises of the advice to run more: how often it settles an inconclusive comparison."""

from __future__ import annotations

import numpy as np

from bench.simulations.figures import Aim, Section
from experiments.analysis.limits import MOST_WORTH_RUNNING
from experiments.analysis.verdict import Arms, Verdict, judge

SETTLED = 0.80
CASES: tuple[tuple[float, int, Arms, float], ...] = (
    (0.04, 6, "independent", 0.95),
    (0.04, 6, "blocked", 0.93),
    (0.06, 10, "independent", 0.75),
    (0.06, 10, "blocked", 0.68),
)
"""Noise, repetitions so far, design, and what was settled when the noise was taken for what it seems."""


def advice(rng: np.random.Generator, trials: int) -> list[Aim]:
    """Two variants that are alike: inconclusive ones get what is advised, and are judged again."""
    found = []
    for noise, n, design, before in CASES:
        advised = settled = 0
        while advised < trials:
            a, b = (list(np.exp(rng.normal(0.0, noise, n))) for _ in range(2))
            first = judged(a, b, design)
            if first.needed_per_arm is None or first.needed_per_arm - n > MOST_WORTH_RUNNING:
                continue
            more = first.more_per_arm or 0
            advised += 1
            a, b = (values + list(np.exp(rng.normal(0.0, noise, more))) for values in (a, b))
            settled += judged(a, b, design).outcome != "inconclusive"
        what = f"noise {noise:.0%}, {n}+{n} so far, {design}: settled by what is advised"
        found.append(Aim(what, settled / trials, SETTLED, "at least", before))
    return found


def judged(a: list[float], b: list[float], design: Arms) -> Verdict:
    return judge(a, b, higher_is_better=True, design=design)


SECTIONS: tuple[Section, ...] = (Section("Advice to run more", advice, 0.2),)
