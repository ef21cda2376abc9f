"""Whether one trial of a search passed: no errors, the offered rate reached, the latency objective met.

Definitions: docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.search import TrialResult

REACHED_RATIO = 0.99
"""Below this share of the offered rate the server did not keep up."""


@dataclass(frozen=True)
class TrialFigures:
    """What a trial measured. `problems` are the sentences that make the run invalid, errors apart.

    `bad_statuses` are the errors that the server itself answered. `driver_problems` say that the load tool was at its
    limit, whatever their level. `latency_ms` None = the tool does not report it.
    """

    offered_rps: float
    throughput_rps: float | None
    errors: int
    latency_ms: float | None
    latency_label: str
    objective_ms: float
    problems: tuple[str, ...] = ()
    driver_problems: tuple[str, ...] = ()
    bad_statuses: int = 0


@dataclass(frozen=True)
class Judgement:
    """`can_repeat` False: trying again cannot help, so the search must stop."""

    result: TrialResult
    reason: str
    can_repeat: bool = True


def judge_trial(figures: TrialFigures) -> Judgement:
    """Pass or fail with the reason; invalid when the trial says nothing about the server."""
    if figures.throughput_rps is None:
        return Judgement("invalid", "The load tool reported no throughput.")
    reached = figures.throughput_rps / figures.offered_rps
    rate = f"{figures.throughput_rps:,.0f} of {figures.offered_rps:,.0f} requests/s ({reached * 100:.1f} %)"
    # A load tool at its limit may lose connections and time, but it does not make the server answer with an error.
    if reached < REACHED_RATIO and figures.driver_problems and not figures.bad_statuses:
        return Judgement("invalid", f"Only {rate}, but it may be the load tool: {figures.driver_problems[0]}")
    if figures.errors:
        return Judgement("fail", f"{figures.errors:,} errors at {figures.offered_rps:,.0f} requests/s.")
    if reached < REACHED_RATIO:
        return Judgement("fail", f"Only {rate} were reached.")
    if figures.problems:
        return Judgement("invalid", figures.problems[0])
    if figures.latency_ms is None:
        text = f"The load tool does not report {figures.latency_label}; choose another objective."
        return Judgement("invalid", text, can_repeat=False)
    met = figures.latency_ms <= figures.objective_ms
    label = figures.latency_label[0].upper() + figures.latency_label[1:]
    comparison = f"{label} {figures.latency_ms:.3g} ms, objective {figures.objective_ms:g} ms"
    return Judgement("pass", f"{comparison}, {rate}.") if met else Judgement("fail", f"{comparison}: missed.")
