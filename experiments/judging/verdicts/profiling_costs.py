"""What profiling costs: profiled runs against those of the same block and variant without a profile."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.analysis.number_text import percent_with_interval
from experiments.analysis.profiling_cost import MOST_COST_PCT, ProfilingCost, cost_of_profiling
from experiments.models import Experiment, Run
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.runs.summary import figure

METRICS = ("throughput_rps", "cpu_ms_per_request", "latency_p99_ms")
"""Of an offered rate throughput says nothing, so what a request costs stands beside it."""
_JUDGED = {"throughput_rps": "the throughput", "cpu_ms_per_request": "the CPU time per request"}
"""What says whether a profile is distorted: the tail of the latency is too noisy for 2 %."""
Pair = tuple[Run, Run]
"""The run without a profile, and the profiled one."""


def profiling_costs(experiment: Experiment) -> tuple[ProfilingCost, ...]:
    """Of an experiment: the pairs are all blocks of all variants. Two queries."""
    runs = experiment.runs.kept().filter(state=Run.State.FINISHED).defer("spec", "findings")
    pairs: dict[tuple[int | None, int | None], dict[bool, Run]] = {}
    for run in runs.order_by("id"):
        if run.is_sound and experiment.compares(run.block):
            pairs.setdefault((run.variant_id, run.block), {})[run.profiled] = run
    return costs_of_pairs(experiment.team_id, [(pair[False], pair[True]) for pair in pairs.values() if len(pair) == 2])


def costs_of_pairs(team_id: int, pairs: Sequence[Pair]) -> tuple[ProfilingCost, ...]:
    """For each figure that both runs of some pair have above 0. One query at most."""
    found = []
    for name, metric in metrics_of(team_id, METRICS).items():
        values = [(figure(plain, name), figure(profiled, name)) for plain, profiled in pairs]
        known = [(one, other) for one, other in values if one and other and one > 0 and other > 0]
        if known:
            plain, profiled = zip(*known, strict=True)
            found.append(cost_of_profiling(name, plain, profiled, higher_is_better=metric.higher_is_better))
    return tuple(found)


def distortion(costs: Sequence[ProfilingCost]) -> str:
    """Whether profiling made the server another one, in a sentence; "" where no pair tells."""
    judged = [one for one in costs if one.metric in _JUDGED]
    known = [one for one in judged if one.ci95_pct is not None]
    if not judged:
        return ""
    if not known:
        return f"What profiling costs is not known yet: {judged[0].n} pairs of runs with and without it."
    limit = f"{MOST_COST_PCT:g} %"
    if certain := [one for one in known if one.is_distorted and one.is_certain]:
        return f"Distorted: profiling itself changed {_changes(certain)}, for the worse by more than {limit}."
    if open_ones := [one for one in known if not one.is_certain]:
        return (
            f"Profiling may have distorted it: it changed {_changes(open_ones)}, and {limit} is within that interval."
        )
    return f"Profiling changed {_changes(known)}: not for the worse by more than {limit}."


def _changes(costs: Sequence[ProfilingCost]) -> str:
    changes = (
        f"{_JUDGED[one.metric]} by {percent_with_interval(one.change_pct or 0.0, one.ci95_pct)}" for one in costs
    )
    return " and ".join(changes)
