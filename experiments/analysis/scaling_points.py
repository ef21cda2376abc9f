"""What single points of a scaling measurement say: efficiency, super-linear ones, whole-number rates, and advice.

The law is Gunther's (Guerrilla Capacity Planning, 2007); the rest is arithmetic. In words: docs/scaling.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.analysis.distributions import welch_interval
from experiments.analysis.limits import MIN_FOR_INTERVAL
from experiments.analysis.scaling import Interval

SUPER_LINEAR_RATIO = 1.05
MIN_EFFICIENCY_RATIO = 0.90


@dataclass(frozen=True)
class Efficiency:
    """E = X(N) / (N X(1)); 1 is ideal. `ci95` is None where a side has fewer than three repetitions."""

    cpus: float
    ratio: float
    ci95: Interval | None

    @property
    def super_linear(self) -> bool:
        """Whether even the lower end of the interval lies above 1.05; without one, the value itself."""
        return (self.ci95[0] if self.ci95 else self.ratio) > SUPER_LINEAR_RATIO


def efficiency(cpus: float, repetitions: Sequence[float], one_cpu: Sequence[float], *, base_cpus: float) -> Efficiency:
    """Throughput per CPU against that of `one_cpu`, the repetitions on `base_cpus` CPUs (1, or the fewest measured).

    With at least three repetitions on both sides the interval is Welch's on logarithms.
    """
    ratio, interval = throughput_ratio(repetitions, one_cpu)
    share = cpus / base_cpus
    if cpus == base_cpus:
        return Efficiency(cpus, 1.0, None)
    return Efficiency(cpus, ratio / share, interval and (interval[0] / share, interval[1] / share))


def throughput_ratio(repetitions: Sequence[float], base: Sequence[float]) -> tuple[float, Interval | None]:
    """How many times the throughput of `base` the `repetitions` have, with the 95 % interval of the ratio.

    Both are in requests/s, one per run. The interval is None where a side has fewer than three. ValueError: a side is
    empty or has a throughput that is not positive.
    """
    a, b = np.array(base, dtype=float), np.array(repetitions, dtype=float)
    if not (len(a) and len(b)) or np.any(a <= 0) or np.any(b <= 0):
        raise ValueError("a ratio of throughputs needs positive repetitions on both sides")
    if min(len(a), len(b)) < MIN_FOR_INTERVAL:
        return float(np.mean(b) / np.mean(a)), None
    logs_a, logs_b = np.log(a), np.log(b)
    ratio = math.exp(float(np.mean(logs_b) - np.mean(logs_a)))
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return ratio, (ratio, ratio)
    low, high = welch_interval(logs_b, logs_a, 0.95)
    return ratio, (math.exp(low), math.exp(high))


@dataclass(frozen=True)
class Quantised:
    """Points whose rates are whole numbers: each stands for a true rate from `rate` to just below `rate + 1`.

    `efficiency_intervals` is what each point's efficiency may be. `linear_k` is the range of rates per CPU with which a
    straight line explains every point; None when no such rate exists, so that the step is real.
    """

    efficiency_intervals: tuple[Interval, ...]
    linear_k: Interval | None

    @property
    def label(self) -> Literal["artefact", "real"]:
        return "artefact" if self.linear_k else "real"


def quantised(cpus: Sequence[int], whole_rates: Sequence[int]) -> Quantised:
    """Whether a straight line, cut off to whole numbers, explains all the points (one CPU count and rate for each).

    ValueError: a CPU count is not positive, or there is not one for each rate.
    """
    if not cpus or len(cpus) != len(whole_rates) or min(cpus) <= 0 or min(whole_rates) < 0:
        raise ValueError("whole rates need a positive CPU count each")
    first = min(range(len(cpus)), key=lambda index: cpus[index])
    base, rate = cpus[first], whole_rates[first]
    intervals = tuple(
        (i * base / (c * (rate + 1)), (i + 1) * base / (c * rate) if rate else math.inf)
        for c, i in zip(cpus, whole_rates, strict=True)
    )
    low = max(i / c for c, i in zip(cpus, whole_rates, strict=True))
    high = min((i + 1) / c for c, i in zip(cpus, whole_rates, strict=True))
    return Quantised(intervals, (low, high) if low < high else None)


@dataclass(frozen=True)
class Instances:
    """So many instances of so many CPUs each, what they would do together, and what one instance on all would do."""

    instances: int
    cpus_each: int
    total_rps: float
    single_rps: float


def advise_instances(
    gamma: float,
    alpha: float,
    beta: float,
    *,
    cpus: int,
    cpus_per_node: int | None = None,
    min_efficiency_ratio: float = MIN_EFFICIENCY_RATIO,
) -> Instances:
    """The largest instances that still use their CPUs well, divide the CPUs evenly and fit into a NUMA node.

    `gamma` (requests/s of one CPU), `alpha` and `beta` (ratios: contention, coherency) are the law's. The total is a
    prediction: that instances do not disturb each other has to be verified by a run. ValueError: there is no CPU.
    """
    if cpus < 1:
        raise ValueError(f"there must be at least one CPU, not {cpus}")

    def law(k: int) -> float:
        return gamma * k / (1 + alpha * (k - 1) + beta * k * (k - 1))

    most = min(cpus, cpus_per_node or cpus)
    fits = [k for k in range(1, most + 1) if cpus % k == 0 and law(k) / (k * gamma) >= min_efficiency_ratio]
    each = max(fits, default=1)
    return Instances(cpus // each, each, cpus // each * law(each), law(cpus))
