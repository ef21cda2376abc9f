"""Courses of a load that harm a figure, and healthy noisy ones: how many of each the check of the course flags.

A shape is one that moves the reported throughput well beyond its noise (the sizes stand in `harmful`). Each is seen as
the records that give a course: every request in seconds of the wall clock (a result file of JMeter), intervals from
the first request (an HdrHistogram log), packets that reach the SUT each second or each 2 s, shifted, with a load tool
that takes a moment to start and a background that is no load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.simulations.figures import Aim, Section
from experiments.analysis.findings import RECORDED, Course, Finding
from experiments.analysis.steady_state import load_was_steady
from experiments.analysis.thresholds import DEFAULT_THRESHOLDS

Rates = NDArray[np.float64]
RATE_RPS = 1000.0
WINDOWS_S = (60, 120, 300)
RECORDS = ("requests by the second", "intervals of a log", "packets each second", "packets each 2 s")
NOISES = (("white", 0.01), ("white", 0.03), ("correlated 0.5", 0.02), ("skewed", 0.03))
HEALTHY_NOISES = (
    *((kind, cov) for kind in ("white", "skewed", "correlated 0.3", "correlated 0.6") for cov in (0.01, 0.03, 0.1)),
    ("dips", 0.01),
    ("dips", 0.03),
)
SHARE_OF_DIPS = 0.019
HARMLESS = ("ok", "skipped")


@dataclass(frozen=True)
class Shaped:
    """A made-up load: its rate at each tenth of a second as a share of the full one, and the words that name it."""

    family: str
    share: Rates
    words: tuple[str, ...]


def harmful(window_s: int, rng: np.random.Generator) -> Iterator[Shaped]:
    """Shapes of each family, over the window and at a place of their own."""
    at_s = np.arange(window_s * 10) / 10
    t = at_s / window_s
    for part in (0.1, 0.2, 0.4, 0.7):
        yield Shaped("dead start", np.where(t < part, 0.0, 1.0), ("began only after",))
        yield Shaped("dead end", np.where(t >= 1 - part, 0.0, 1.0), ("was dead from",))
    for gap_s in (4, 8, 12):
        begin_s = rng.uniform(0.2, 0.7) * window_s
        yield Shaped("gap", np.where((at_s >= begin_s) & (at_s < begin_s + gap_s), 0.0, 1.0), ("stood still for",))
    for by in (0.25, 0.5, 0.9):
        yield Shaped("ramp up", 1 - by + by * t, ("rose all along",))
        yield Shaped("ramp down", 1 - by * t, ("fell all along",))
    for place in (0.2, 0.35, 0.5, 0.8):
        for by in (0.2, 0.5):
            up = ("The warm-up was not over", "came to its level only then", "jumped at")
            yield Shaped("step up", np.where(t < place, 1 - by, 1.0), up)
            yield Shaped("step down", np.where(t < place, 1.0, 1 - by), ("jumped at",))
    for part in (0.15, 0.3):
        begin = rng.uniform(0.25, 0.5)
        yield Shaped("lower for a while", np.where((t >= begin) & (t < begin + part), 0.6, 1.0), ("below what it was",))
    for period_s in (12, 20):
        for by in (0.4, 0.8):
            yield Shaped("sawtooth", 1 - by * ((at_s % period_s) / period_s), ("went up and down",))
            yield Shaped("two levels", np.where(at_s % period_s < period_s / 2, 1.0, 1 - by), ("went up and down",))
    for scale in (0.1, 0.2, 0.4):
        slow = ("The warm-up was not over", "rose all along", "came to its level only then")
        yield Shaped("warm-up", 1 - 0.6 * np.exp(-t / scale), slow)
    for share in (0.08, 0.15):
        seconds = np.ones(window_s)
        seconds[rng.choice(window_s, round(share * window_s), replace=False)] = 0.25
        words = ("dipped", "went up and down", "below what it was", "below that of the rest", "stood still")
        yield Shaped("many long pauses", np.repeat(seconds, 10), words)


def healthy(window_s: int, kind: str, cov: float, rng: np.random.Generator) -> Rates:
    """The rate of each second as a share of the full one: noise alone, or short dips that take less than 2 %."""
    if kind != "dips":
        return noise(window_s, kind, cov, rng)
    found = noise(window_s, "white", cov, rng)
    depth = rng.uniform(0.3, 0.8)
    found[rng.choice(window_s, int(SHARE_OF_DIPS * window_s / depth), replace=False)] *= 1 - depth
    return found


def noise(count: int, kind: str, cov: float, rng: np.random.Generator) -> Rates:
    """Factors around 1 with the coefficient of variation; "correlated 0.6" is how far one foretells the next."""
    found: Rates
    if kind == "skewed":
        raw = rng.lognormal(0, 0.5, count)
        found = 1 + cov * (raw - np.exp(0.125)) / np.sqrt(np.exp(0.5) - np.exp(0.25))
        return found.clip(min=0)
    found = rng.normal(0, 1, count)
    if kind.startswith("correlated"):
        r = float(kind.split()[1])
        for i in range(1, count):
            found[i] = r * found[i - 1] + np.sqrt(1 - r * r) * found[i]
    return (1 + cov * found).clip(min=0)


def as_recorded(per_second: Rates, record: str, rng: np.random.Generator) -> tuple[Course, float]:
    """The course as the record shows it, and the length of the window that is judged with it."""
    window_s = len(per_second)
    if record == "requests by the second":
        begins_s = rng.uniform(0, 1)  # the seconds of the wall clock are not those of the load
        at_s = np.arange(window_s + 1) + 0.5 - begins_s
        counts = np.round(RATE_RPS * np.interp(at_s, np.arange(window_s) + 0.5, per_second))
        counts[0] *= 1 - begins_s
        counts[-1] *= begins_s
        seen = counts > 0  # a second without a request has no row
        answered = np.flatnonzero(seen)
        lasted_s = min(float(window_s), float(at_s[answered[-1]] + 0.5))
        return Course(RECORDED, at_s[seen].tolist(), counts[seen].tolist(), 1.0, complete=True), lasted_s
    if record == "intervals of a log":
        at_s = np.arange(window_s) + 0.5
        return Course(RECORDED, at_s.tolist(), (RATE_RPS * per_second).tolist(), 1.0, complete=True), float(window_s)
    every_s = 2 if record.endswith("2 s") else 1
    sampled = per_second[: window_s // every_s * every_s].reshape(-1, every_s).mean(axis=1)
    packets = 1.4 * RATE_RPS * sampled + rng.poisson(5, len(sampled))
    packets[0] *= rng.uniform(0.3, 1)  # the tool starts
    at_s = (np.arange(len(packets)) + 0.5) * every_s + rng.uniform(-0.05, 0.05, len(packets))
    return Course("packets per second", at_s.tolist(), packets.tolist(), float(every_s)), float(window_s)


def judged(per_second: Rates, record: str, rng: np.random.Generator) -> Finding:
    course, window_s = as_recorded(per_second, record, rng)
    return load_was_steady(course, window_s, DEFAULT_THRESHOLDS)


def courses(rng: np.random.Generator, trials: int) -> list[Aim]:
    """Every harmful shape in every record and noise; then healthy ones of as many."""
    flagged: dict[str, list[bool]] = {}
    named: list[bool] = []
    for window_s in WINDOWS_S:
        for kind, cov in NOISES:
            for shaped in harmful(window_s, rng):
                for record in RECORDS:
                    if _is_cut_off(shaped, record):
                        continue
                    seconds = shaped.share.reshape(-1, 10).mean(axis=1) * noise(window_s, kind, cov, rng)
                    found = judged(seconds, record, rng)
                    flagged.setdefault(shaped.family, []).append(found.level not in HARMLESS)
                    named.append(any(words in found.sentence for words in shaped.words))
    shapes = sum(len(found) for found in flagged.values())
    aims = [
        Aim(f"{family}, {len(found)} courses: flagged", float(np.mean(found)), 1.0, "at least")
        for family, found in flagged.items()
    ]
    aims.append(
        Aim(f"all {shapes:,} harmful courses: named by the right sentence", float(np.mean(named)), 0.99, "at least")
    )
    return [*aims, *_false_alarms(rng, trials)]


def _is_cut_off(shaped: Shaped, record: str) -> bool:
    """A file of requests begins with its first one and ends with its last: that it is too short is seen elsewhere."""
    return record == "requests by the second" and shaped.family in ("dead start", "dead end")


def _false_alarms(rng: np.random.Generator, trials: int) -> Iterator[Aim]:
    wrong: dict[str, list[bool]] = {}
    for kind, cov in HEALTHY_NOISES:
        for window_s in WINDOWS_S:
            for _ in range(max(1, trials // len(HEALTHY_NOISES) // len(WINDOWS_S))):
                record = RECORDS[rng.integers(len(RECORDS))]
                found = judged(healthy(window_s, kind, cov, rng), record, rng)
                wrong.setdefault(kind, []).append(found.level not in HARMLESS)
    everything: Sequence[bool] = [one for flags in wrong.values() for one in flags]
    for kind, flags in wrong.items():
        yield Aim(f"healthy, {kind}, {len(flags)} courses: flagged", float(np.mean(flags)), 0.03, "at most")
    yield Aim(f"all {len(everything):,} healthy courses: flagged", float(np.mean(everything)), 0.02, "at most")


SECTIONS: tuple[Section, ...] = (Section("Loads that were not what they seemed", courses),)
