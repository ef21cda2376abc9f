"""What docs/verdicts.md promises: coverage, power, false alarms under drift and of repeated looks."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bench.simulations.figures import Aim, Figure, Section, Simulated
from experiments.analysis.bootstrap import RESAMPLES, bca_of_two_samples
from experiments.analysis.power import needed_to_find
from experiments.analysis.sequential import (
    AFTER_PRECISE,
    LOOK_ALPHA,
    LOOKS,
    MIN_FOR_PRECISION,
    StopRule,
    standing_of,
)
from experiments.analysis.verdict import judge

Rows = NDArray[np.float64]
NOISE = 0.02
OUTLIER = math.log(0.9)
"""Every tenth repetition of the second population is 10 % slower."""


def coverage(rng: np.random.Generator, trials: int) -> list[Figure]:
    """How often a nominal 95 % interval holds the true change, by method, repetitions and population."""
    published = {
        3: {"Welch on logs": (0.97, 0.98), "percentile bootstrap": (0.82, 0.80), "BCa bootstrap": (0.82, 0.79)},
        5: {
            "Welch on logs": (0.96, 0.98),
            "Hodges-Lehmann": (0.97, 0.97),
            "percentile bootstrap": (0.88, 0.87),
            "BCa bootstrap": (0.88, 0.83),
        },
        10: {
            "Welch on logs": (0.96, 0.96),
            "Hodges-Lehmann": (0.96, 0.94),
            "percentile bootstrap": (0.92, 0.90),
            "BCa bootstrap": (0.92, 0.87),
        },
        20: {
            "Welch on logs": (0.94, 0.95),
            "Hodges-Lehmann": (0.94, 0.96),
            "percentile bootstrap": (0.92, 0.94),
            "BCa bootstrap": (0.92, 0.91),
        },
    }
    found = []
    for n, methods in published.items():
        for place, population in enumerate(("lognormal, CoV 2 %", "with 10 % outliers")):
            held = dict.fromkeys(methods, 0)
            for _ in range(trials):
                a, b = (_population(rng, n, outliers=place == 1) for _ in range(2))
                for method, (low, high) in _intervals(rng, a, b).items():
                    held[method] += low <= 0 <= high
            found += [
                Figure(f"n={n}, {population}: {method}", held[method] / trials, trials, said[place], said[place])
                for method, said in methods.items()
            ]
    return found


def power(rng: np.random.Generator, trials: int) -> list[Figure]:
    """The documented numbers of repetitions find their change in four of five cases, and one fewer does not."""
    found = []
    for cov, change in ((0.01, 0.01), (0.02, 0.02), (0.02, 0.03), (0.03, 0.05), (0.05, 0.05)):
        n = needed_to_find(cov, change)
        if n is None:
            continue
        sd, shift = math.sqrt(math.log1p(cov**2)), math.log1p(change)
        a = rng.normal(0, sd, (trials, n))
        seen = float(np.mean(_welch_p(a, rng.normal(shift, sd, (trials, n))) < 0.05))
        found.append(Figure(f"CoV {cov:.0%}, {change:.0%} change, n={n}: found", seen, trials, 0.80, 0.80 + 0.6 / n))
    return found


def drift(rng: np.random.Generator, trials: int) -> list[Figure]:
    """Two identical variants on a machine that gets slower with every run: how often they are called different."""
    published = {
        0.002: {"AAABBB, Welch": 0.40, "ABAB, paired": 0.056, "random blocks, paired": 0.044},
        0.005: {"AAABBB, Welch": 0.96, "ABAB, paired": 0.108, "random blocks, paired": 0.048},
    }
    found = []
    for per_run, said in published.items():
        runs = rng.normal(0, 0.01, (trials, 12)) - per_run * np.arange(12)
        pairs = runs.reshape(trials, 6, 2)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        swapped = rng.random((trials, 6)) < 0.5
        p = {
            "AAABBB, Welch": _welch_p(runs[:, :6], runs[:, 6:]),
            "ABAB, paired": _paired_p(second - first),
            "random blocks, paired": _paired_p(np.where(swapped, first - second, second - first)),
        }
        found += [
            Figure(f"{per_run:.1%} slower per run: {order}", float(np.mean(p[order] < 0.05)), trials, one, one, 0.001)
            for order, one in said.items()
        ]
    return found


def order(rng: np.random.Generator, trials: int) -> list[Simulated]:
    """Two identical variants where neighbouring runs are alike: how often they are called different, by their order.

    The sequential order cannot be mended by arithmetic, so its sentence says what is not in its interval.
    """
    published = {(5, 0.3): 0.11, (10, 0.3): 0.14, (5, 0.6): 0.24, (10, 0.6): 0.30}
    found: list[Simulated] = []
    for (n, alike), said in published.items():
        noise = rng.normal(0, 1, (trials, 2 * n))
        runs = np.empty_like(noise)
        runs[:, 0] = noise[:, 0] / math.sqrt(1 - alike**2)
        for place in range(1, 2 * n):
            runs[:, place] = alike * runs[:, place - 1] + noise[:, place]
        pairs = runs.reshape(trials, n, 2)
        swapped = rng.random((trials, n)) < 0.5
        difference = pairs[:, :, 1] - pairs[:, :, 0]
        sequential = float(np.mean(_welch_p(runs[:, :n], runs[:, n:]) < 0.05))
        blocks = float(np.mean(_paired_p(np.where(swapped, -difference, difference)) < 0.05))
        what = f"autocorrelation {alike:g}, n={n}+{n}"
        found += [
            Figure(f"{what}: sequential, with its caveat", sequential, trials, said, said),
            Aim(f"{what}: random blocks", blocks, 0.06, "at most"),
        ]
    return found


def looks(rng: np.random.Generator, trials: int) -> list[Figure]:
    """Identical variants looked at after 5, 8, 12 and 20 blocks: how often a look raises an alarm."""
    differences = rng.normal(0, 1, (trials, LOOKS[-1]))
    p = np.stack([_paired_p(differences[:, :n]) for n in LOOKS])
    named = ((LOOK_ALPHA, 0.0495), (0.05, 0.137))
    found = [
        Figure(f"four looks at {alpha:g}: alarm", float(np.mean((p < alpha).any(axis=0))), trials, one, one, 0.0001)
        for alpha, one in named
    ]
    rule, few = StopRule("until_clear"), max(200, trials // 20)
    alarms = sum(_alarmed(rule, rng) for _ in range(few))
    return [*found, Figure("the same by the code that stops experiments", alarms / few, few, 0.0495, 0.0495, 0.0001)]


def precision(rng: np.random.Generator, trials: int) -> list[Figure]:
    """Stopping when the interval is narrow enough: how often it then holds the true change."""
    most = 60
    rule = f"from {MIN_FOR_PRECISION} blocks, {AFTER_PRECISE} more behind the stop"
    differences = rng.normal(0, 1, (trials, most))
    found = []
    for what, least, after, low, high in (
        (rule, MIN_FOR_PRECISION, AFTER_PRECISE, 0.935, 0.945),
        ("from 3 blocks, none behind the stop", 3, 0, 0.90, 0.92),
    ):
        for target in (0.5, 0.6):
            stopped = np.full(trials, most)
            for n in range(most - 1, least - 1, -1):
                half = special.stdtrit(n - 1, 0.975) * differences[:, :n].std(axis=1, ddof=1) / math.sqrt(n)
                stopped[half <= target] = n
            ends = np.minimum(stopped + after, most)
            held = [
                abs(row[:n].mean()) <= special.stdtrit(n - 1, 0.975) * row[:n].std(ddof=1) / math.sqrt(n)
                for row, n in zip(differences, ends, strict=True)
            ]
            found.append(
                Figure(f"{what}, half-width {target} sd: held", float(np.mean(held)), trials, low, high, 0.001)
            )
    return found


def speed(rng: np.random.Generator, pairs: int = 1000) -> str:
    """How long the verdicts on so many pairs take, in both designs."""
    arms = [(list(np.exp(rng.normal(7, NOISE, 10))), list(np.exp(rng.normal(7, NOISE, 10)))) for _ in range(pairs)]
    took = []
    for design in ("blocked", "independent"):
        before = time.process_time()
        for a, b in arms:
            judge(a, b, higher_is_better=True, design="blocked" if design == "blocked" else "independent")
        took.append(f"{design} {time.process_time() - before:.2f} s")
    return f"{pairs:,} verdicts of 10 + 10 repetitions, CPU time: {', '.join(took)}."


def _alarmed(rule: StopRule, rng: np.random.Generator) -> bool:
    a, b = np.exp(rng.normal(0, NOISE, (2, LOOKS[-1])))
    # So small a margin that "no practical difference" never ends it early: only alarms are counted.
    found = standing_of(rule, list(a), list(b), higher_is_better=True, margin_ratio=1e-9)
    return found.settled


def _population(rng: np.random.Generator, n: int, *, outliers: bool) -> Rows:
    logs = rng.normal(0, NOISE, n)
    return logs + OUTLIER * (rng.random(n) < 0.1) if outliers else logs


def _intervals(rng: np.random.Generator, a: Rows, b: Rows) -> dict[str, tuple[float, float]]:
    verdict = judge(list(np.exp(a)), list(np.exp(b)), higher_is_better=True, design="independent")
    n = len(a)
    means = b[rng.integers(0, n, (RESAMPLES, n))].mean(axis=1) - a[rng.integers(0, n, (RESAMPLES, n))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    found = {"percentile bootstrap": (float(low), float(high)), "BCa bootstrap": bca_of_two_samples(a, b)}
    if verdict.ci95_pct:
        found["Welch on logs"] = verdict.ci95_pct
    if verdict.hodges_lehmann_ci95_pct and n >= 5:
        found["Hodges-Lehmann"] = verdict.hodges_lehmann_ci95_pct
    return found


def _welch_p(a: Rows, b: Rows) -> Rows:
    share_a, share_b = a.var(axis=1, ddof=1) / a.shape[1], b.var(axis=1, ddof=1) / b.shape[1]
    degrees = (share_a + share_b) ** 2 / (share_a**2 / (a.shape[1] - 1) + share_b**2 / (b.shape[1] - 1))
    t = np.abs(b.mean(axis=1) - a.mean(axis=1)) / np.sqrt(share_a + share_b)
    p: Rows = 2 * special.stdtr(degrees, -t)
    return p


def _paired_p(differences: Rows) -> Rows:
    n = differences.shape[1]
    t = np.abs(differences.mean(axis=1)) / (differences.std(axis=1, ddof=1) / math.sqrt(n))
    p: Rows = 2 * special.stdtr(n - 1, -t)
    return p


SECTIONS: tuple[Section, ...] = (
    Section("Coverage of 95 % intervals", coverage),
    Section("Power", power, 5),
    Section("False alarms on a machine that drifts", drift, 5),
    Section("Neighbouring runs that are alike", order, 5),
    Section("Looking several times", looks, 10),
    Section("Stopping when it is precise", precision, 4),
)
