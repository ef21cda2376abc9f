"""Why it is slower: the CPU that a request costs, against the baseline's (utilisation law, D = U n / X).

Source: Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978; docs/scaling.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from experiments.analysis.number_text import signed_percent

Quadrant = Literal["low_cpu_low_tps", "high_cpu_low_tps", "cheaper_but_slower", "as_fast"]

LOW_TPS_RATIO = 0.05
"""Throughput is low when it lies at least this much below the baseline's."""
SAME_DEMAND_RATIO = 0.10
"""CPU per request counts as the same within this share of the baseline's."""

LABELS: dict[Quadrant, str] = {
    "low_cpu_low_tps": "low CPU, low tps",
    "high_cpu_low_tps": "high CPU, low tps",
    "cheaper_but_slower": "cheaper, yet slower",
    "as_fast": "not slower",
}


@dataclass(frozen=True)
class Demand:
    """One side: throughput, how busy its CPUs were (1.0 = all of them), and how many there were."""

    throughput_rps: float
    cpu_ratio: float
    cpus: float

    @property
    def ms_per_request(self) -> float:
        """CPU time that one request costs, in milliseconds of one CPU."""
        return self.cpu_ratio * self.cpus / self.throughput_rps * 1000


@dataclass(frozen=True)
class CpuVerdict:
    quadrant: Quadrant
    label: str
    sentence: str
    baseline_ms: float
    candidate_ms: float


def judge_cpu(
    baseline: Demand, candidate: Demand, *, name: str = "The candidate", throughput_ci95_high: float | None = None
) -> CpuVerdict:
    """Whether a slower candidate waits or works more for each request.

    `throughput_ci95_high` is the upper end of the 95 % interval of its throughput relative to the baseline's (0.97 =
    at most 3 % slower); without one the ratio itself decides. ValueError: a throughput, CPU count or
    CPU use is not above 0.
    """
    for side in (baseline, candidate):
        if not (side.throughput_rps > 0 and side.cpus > 0 and side.cpu_ratio > 0):
            raise ValueError("the CPU of a request needs throughput, CPUs and a CPU use above 0")
    speed = candidate.throughput_rps / baseline.throughput_rps
    before, after = baseline.ms_per_request, candidate.ms_per_request
    change = after / before - 1
    cost = f"a request costs {after:.3g} ms of CPU against {before:.3g} ms ({signed_percent(change * 100)})"
    rate = f"{name} makes {candidate.throughput_rps:,.0f} requests/s, {signed_percent((speed - 1) * 100)}"
    if (throughput_ci95_high if throughput_ci95_high is not None else speed) >= 1 - LOW_TPS_RATIO:
        word = "not slower" if speed >= 1 else "not slower by more than 5 % for sure"
        return _found("as_fast", f"{rate}: {word}; {cost}.", before, after)
    if change > SAME_DEMAND_RATIO:
        text = f"{rate}, with its CPUs {_busy(candidate)} busy: {cost}, so each request has become costlier."
        return _found("high_cpu_low_tps", text, before, after)
    if change < -SAME_DEMAND_RATIO:
        text = (
            f"{rate}, although {cost}: less work and less done. It waits for a lock, a pool, the network or the load "
            "tool, or it does not do the same work; compare the answers first."
        )
        return _found("cheaper_but_slower", text, before, after)
    text = (
        f"{rate}, and its CPUs are {_busy(candidate)} busy; {cost}, about the same work. So requests wait: for a "
        "lock, a pool of threads or connections, the network, or the load tool."
    )
    return _found("low_cpu_low_tps", text, before, after)


def _found(quadrant: Quadrant, sentence: str, before_ms: float, after_ms: float) -> CpuVerdict:
    return CpuVerdict(quadrant, LABELS[quadrant], sentence, before_ms, after_ms)


def _busy(side: Demand) -> str:
    return f"{side.cpu_ratio * 100:.0f} %"
