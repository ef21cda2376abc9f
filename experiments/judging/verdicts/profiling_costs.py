"""What profiling costs in an experiment: its profiled runs against their twins of the same block and variant."""

from __future__ import annotations

from experiments.analysis.profiling_cost import ProfilingCost, cost_of_profiling
from experiments.models import Experiment, Run
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.runs.summary import figure

METRICS = ("throughput_rps", "cpu_ms_per_request", "latency_p99_ms")
"""Of an offered rate throughput says nothing, so what a request costs stands beside it."""


def profiling_costs(experiment: Experiment) -> tuple[ProfilingCost, ...]:
    """For each figure that pairs have: the pairs are all blocks of all variants. Two queries."""
    runs = experiment.runs.kept().filter(state=Run.State.FINISHED).defer("spec", "findings")
    pairs: dict[tuple[int | None, int | None], dict[bool, Run]] = {}
    for run in runs.order_by("id"):
        if run.is_sound and experiment.compares(run.block):
            pairs.setdefault((run.variant_id, run.block), {})[run.profiled] = run
    both = [pair for pair in pairs.values() if len(pair) == 2]
    found = []
    for name, metric in metrics_of(experiment.team_id, METRICS).items():
        values = [(figure(pair[False], name), figure(pair[True], name)) for pair in both]
        known = [(one, other) for one, other in values if one and other and one > 0 and other > 0]
        if known:
            plain, profiled = zip(*known, strict=True)
            found.append(cost_of_profiling(name, plain, profiled, higher_is_better=metric.higher_is_better))
    return tuple(found)
