"""Why it is slower: the CPU that a request costs, against the baseline's (utilisation law, D = U n / X).

Source: Denning and Buzen, The Operational Analysis of Queueing Network Models, 1978; docs/scaling.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.number_text import percent_with_interval
from experiments.analysis.verdict import Interval, Verdict

Quadrant = Literal["low_cpu_low_tps", "high_cpu_low_tps", "cheaper_but_slower", "as_fast", "unclear", "too_early"]

LOW_TPS_RATIO = 0.05
"""Throughput is low when its whole interval lies at least this much below the baseline's."""
SAME_DEMAND_RATIO = 0.10
"""CPU per request counts as the same when its interval is within this share of the baseline's."""

OWN_SHARE_RATIO = 0.5
"""Interrupts are no process's; where the server's processes used less than this of what was busy, others worked too."""

LABELS: dict[Quadrant, str] = {
    "low_cpu_low_tps": "low CPU, low tps",
    "high_cpu_low_tps": "high CPU, low tps",
    "cheaper_but_slower": "cheaper, yet slower",
    "as_fast": "not slower",
    "unclear": "unclear",
    "too_early": "too early",
}


@dataclass(frozen=True)
class Demand:
    """One side: throughput, how busy its CPUs were (1.0 = all of them), and how many there were.

    `busy_cpus` is how many CPUs were busy with whatever it was, `server_cpus` how many of them the processes of the
    server used themselves. None = not known; without the first, nothing is compared.
    """

    throughput_rps: float
    cpu_ratio: float
    cpus: float
    busy_cpus: float | None = None
    server_cpus: float | None = None

    @property
    def ms_per_request(self) -> float:
        """CPU time that one request costs, in milliseconds of one CPU."""
        return self.cpu_ratio * self.cpus / self.throughput_rps * 1000

    @property
    def contradiction(self) -> str:
        """Why the CPU time of the machine is not the server's, as a sentence; "" where nothing speaks against it."""
        if not self.busy_cpus:
            return ""
        if self.server_cpus is None:
            used = "the processes that are known of the server used none of them"
        elif OWN_SHARE_RATIO <= self.server_cpus / self.busy_cpus <= 1 / OWN_SHARE_RATIO:
            return ""
        else:
            used = f"the server's processes used {self.server_cpus:.2g} of them"
        return f"{self.busy_cpus:.2g} CPUs were busy and {used}, so what a request costs is not known."


@dataclass(frozen=True)
class CpuVerdict:
    quadrant: Quadrant
    label: str
    sentence: str
    baseline_ms: float
    candidate_ms: float


def judge_cpu(
    baseline: Demand,
    candidate: Demand,
    *,
    cost: Verdict | None,
    throughput_pct: Interval | None,
    name: str = "The candidate",
    doubt: str = "",
    server: str = "",
) -> CpuVerdict:
    """Whether a slower candidate waits or works more for each request; a cause is named only where intervals show it.

    `cost` compares the CPU per request of the repetitions, with SAME_DEMAND_RATIO as its margin; None = single runs.
    `throughput_pct` is the interval of its throughput in percent of the baseline's (-3 = 3 % slower). `doubt` says why
    throughput is not the server's, as a sentence. Nothing is said of a request's cost where the figures of a machine
    and of the server's processes disagree. `server` is what the loaded server is in a system of several hosts, whose
    CPUs these are alone. ValueError: a throughput, CPU count or CPU use is not above 0.
    """
    for side in (baseline, candidate):
        if not (side.throughput_rps > 0 and side.cpus > 0 and side.cpu_ratio > 0):
            raise ValueError("the CPU of a request needs throughput, CPUs and a CPU use above 0")
    speed = candidate.throughput_rps / baseline.throughput_rps
    before, after = baseline.ms_per_request, candidate.ms_per_request
    slower = percent_with_interval((speed - 1) * 100, throughput_pct)
    whose = f"the CPUs of {server}" if server else "its CPUs"
    busy = f"with {whose} {candidate.cpu_ratio * 100:.0f} % busy"
    rate = f"{name} makes {candidate.throughput_rps:,.0f} requests/s, {slower}, {busy}"
    cost_pct = cost.estimate_pct if cost and cost.estimate_pct is not None else (after / before - 1) * 100
    per_request = (
        f"a request costs {after:.3g} ms of {'its ' if server else ''}CPU against {before:.3g} ms "
        f"({percent_with_interval(cost_pct, cost.deciding_pct if cost else None)})"
    )

    def found(quadrant: Quadrant, said: str) -> CpuVerdict:
        return CpuVerdict(quadrant, LABELS[quadrant], f"{rate}; {per_request}{said}", before, after)

    for side, of in ((candidate, name), (baseline, "the baseline")):
        if side.contradiction:
            silent = f"{rate}. No cause is named: on the machine of {of} {side.contradiction}"
            return CpuVerdict("unclear", LABELS["unclear"], silent, before, after)
    if cost is None:
        return found("too_early", ". Too early to say why: single runs show no noise.")
    if cost.outcome == "invalid":
        repeated = f"{min(cost.n_a, cost.n_b)} of {MIN_FOR_VERDICT} repetitions"
        return found("too_early", f". Too early to say why: {repeated}.")
    if throughput_pct is None:
        return found("too_early", ". Too early to say why: there is no verdict on its throughput.")
    if doubt:
        return found("unclear", f". No cause is named: {doubt}")
    low, high = (1 + end / 100 for end in throughput_pct)
    if low >= 1 - LOW_TPS_RATIO:
        return found("as_fast", ": not slower by more than 5 %.")
    if high >= 1 - LOW_TPS_RATIO:
        return found("unclear", ". Whether it is slower by more than 5 % is not clear yet, so no cause is named.")
    return found(*_cause(cost))


def _cause(cost: Verdict) -> tuple[Quadrant, str]:
    """Why throughput is low, by the interval of the CPU per request."""
    if cost.outcome == "no_practical_difference":
        return "low_cpu_low_tps", (
            ", about the same work. So requests wait: for a lock, a pool of threads or connections, the network, or "
            "the load tool."
        )
    size = abs(cost.estimate_pct or 0.0) / 100
    if size > SAME_DEMAND_RATIO and cost.outcome in ("worse", "worse_size_uncertain"):
        return "high_cpu_low_tps", ", so each request has become costlier."
    if size > SAME_DEMAND_RATIO and cost.outcome in ("better", "better_size_uncertain"):
        return "cheaper_but_slower", (
            ": less work and less done. It waits for a lock, a pool, the network or the load tool, or it does not do "
            "the same work; compare the answers first."
        )
    return "unclear", ". Whether a request costs more than before is not clear yet, so no cause is named."
