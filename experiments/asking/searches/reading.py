"""The read side of searches: names, trials, cost and the objective in words; pages and API alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from agents.drivers.base.driver import Driver
from agents.drivers.rates import at_rate
from agents.results.report import LatencyBasis
from experiments.analysis.search import expected_trials
from experiments.asking.launching.choices import Choice
from experiments.models import CapacitySearch, Run, SearchTrial
from experiments.registry.database_clock import database_now
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.runs.summary import figure
from experiments.running.queue.estimates import estimates_for


@dataclass(frozen=True)
class Cost:
    """Trials and the time of their runs."""

    trials: int
    duration: timedelta


def trials_of(search: CapacitySearch) -> list[SearchTrial]:
    """The trials in order, with their runs, without wide columns."""
    return list(search.trials.select_related("run").defer("run__spec"))


def latency_of(search: CapacitySearch, run: Run) -> float | None:
    """The figure that the objective is about; None where it is missing or meaningless."""
    return figure(run, search.objective_metric)


def latency_basis(search: CapacitySearch) -> LatencyBasis:
    """From when the trials' latency counts: some tools change it when they have a rate."""
    driver: Driver = content_of(search.workload).driver
    return at_rate(driver, search.start_low_rps).latency_basis


def cost_of(search: CapacitySearch) -> Cost:
    """Trials, and the time that their runs took."""
    spans = list(search.trials.values_list("run__started_at", "run__finished_at"))
    now = database_now()
    return Cost(len(spans), sum(((end or now) - start for start, end in spans if start), timedelta()))


def expected_cost(choice: Choice, *, low_rps: float, high_rps: float, width_ratio: float) -> Cost:
    """About what a search will take, when its two rates really are a bracket."""
    trials = expected_trials(low_rps, high_rps, width_ratio)
    estimates = estimates_for({choice.workload.pk}, {choice.sut.pk})
    return Cost(trials, timedelta(seconds=trials * estimates.takes_s(choice.workload.pk, choice.sut.pk)))


def objective_text(search: CapacitySearch) -> str:
    """The objective as people write it: "latency p99 ≤ 50 ms"."""
    return f"{latency_name(search.objective_metric)} ≤ {search.objective_ms:g} ms"


def latency_name(metric: str) -> str:
    """The figure in the middle of a sentence: "latency p99"."""
    label = METRICS[metric].label
    return label[0].lower() + label[1:].replace(",", "")
