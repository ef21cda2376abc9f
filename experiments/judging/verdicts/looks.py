"""The looks of an experiment at its data so far, worked out from its runs as the engine does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.sequential import LOOKING, Look
from experiments.judging.verdicts.judging import comparisons_of
from experiments.models import Experiment, Run, Variant
from experiments.registry.experiments.rules import stop_rule_of
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec


@dataclass(frozen=True)
class PairLooks:
    """The looks at one candidate for one metric; `following` is the number of blocks of the next one."""

    candidate: str
    metric: MetricSpec
    looks: tuple[Look, ...]
    left_out: int
    settled: bool
    following: int | None


def looks_of(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> list[PairLooks]:
    """The looks of a stop rule, worked out from the runs as the engine does; empty for a fixed number."""
    if experiment.stop_rule == Experiment.StopRule.FIXED:
        return []
    finished = sorted((run for run in runs if not run.is_live), key=lambda run: (run.block or 0, run.pk))
    ended = experiment.state in (Experiment.State.FINISHED, Experiment.State.CANCELLED)
    metrics = metrics_of(experiment.team_id, experiment.deciding_metrics)
    return [
        PairLooks(
            candidate=one.candidate.name,
            metric=metrics[one.metric],
            looks=one.standing.looks,
            left_out=one.standing.looks[0].number - 1 if one.standing.looks else 0,
            settled=one.standing.settled,
            following=None if ended else one.standing.next_blocks,
        )
        for one in comparisons_of(experiment, variants, finished, spent=ended)
        if one.decides
    ]


def planned_looks(experiment: Experiment, candidates: int) -> str:
    """The looks of the rule in words."""
    rule = stop_rule_of(experiment, candidates)
    if rule.kind in LOOKING:
        shown = ", ".join(map(str, rule.looks))
        return f"Looks after {shown} blocks, each at α {rule.alpha:.2g}; together a false alarm in less than 5 %."
    return (
        f"Looks after every block from {rule.looks[0]} on, until the 95 % interval is within "
        f"±{100 * (rule.target_ratio or 0):g} %, then two blocks more; at most {rule.max_blocks}."
    )
