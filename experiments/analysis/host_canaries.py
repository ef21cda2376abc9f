"""Whether a host itself got slower: one short check of it against its own earlier ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.distributions import student_quantile

MIN_EARLIER = 5
"""Fewer earlier checks say too little of how far one differs from the next."""
MOST_EARLIER = 30
"""Older ones say what the host was, and not what it is."""
FLOOR_RATIO = 0.03
"""A change that is certainly smaller is none that an experiment has to mind."""


@dataclass(frozen=True)
class CanaryChange:
    """The newest check as a ratio of the geometric mean of `earlier` ones; `ci95` is where it lies with 95 %.

    `slower` and `faster` only when all of the interval is beyond 1 and the ratio is beyond the floor.
    """

    ratio: float
    ci95: tuple[float, float]
    earlier: int
    slower: bool
    faster: bool


def canary_change(earlier: Sequence[float], now: float, *, higher_is_better: bool) -> CanaryChange | None:
    """`now`, the newest check of a host in the unit of its own, against `earlier` ones in that unit, oldest first.

    None with fewer than MIN_EARLIER of them, or a figure that is not above 0. The interval is the prediction interval
    of one further observation, on logarithms: t(n-1) * s * sqrt(1 + 1/n) (Hahn and Meeker, Statistical Intervals, 4.8).
    """
    values = [value for value in earlier[-MOST_EARLIER:] if value > 0 and math.isfinite(value)]
    if len(values) < MIN_EARLIER or not (now > 0 and math.isfinite(now)):
        return None
    logs = np.log(values)
    n, spread = len(values), float(np.std(logs, ddof=1))
    change = math.log(now) - float(np.mean(logs))
    half = student_quantile(n - 1, 0.975) * spread * math.sqrt(1 + 1 / n)
    low, high = math.exp(change - half), math.exp(change + half)
    lower = high < 1 and math.exp(change) < 1 - FLOOR_RATIO
    higher = low > 1 and math.exp(change) > 1 + FLOOR_RATIO
    slower, faster = (lower, higher) if higher_is_better else (higher, lower)
    return CanaryChange(math.exp(change), (low, high), n, slower, faster)


def canary_sentence(host: str, check: str, change: CanaryChange) -> str:
    """What stands before a verdict when the host changed, "" when it did not; `check` is such as `CPU loop`."""
    if not change.slower and not change.faster:
        return ""
    low, high = ((bound - 1) * 100 for bound in change.ci95)
    word = "slower" if change.slower else "faster"
    figures = f"{(change.ratio - 1) * 100:+.1f} % [{low:+.1f}, {high:+.1f}]".replace("-", "\N{MINUS SIGN}")
    return f"{host} itself got {word}: its {check} is {figures} against its last {change.earlier} checks."
