"""Running an experiment again under other labels: CI asks the same question for every commit."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.launch import Candidate, create_experiment
from experiments.models import Experiment, Member
from experiments.planning.rules import rules_of
from experiments.runs.labels import check_labels


def copy_experiment(
    member: Member,
    experiment: Experiment,
    *,
    labels: Mapping[str, str] | None = None,
    repetitions: int | None = None,
) -> Experiment:
    """A draft with the same variants, workload and rules; `labels` are added to the original's."""
    return create_experiment(
        member,
        name=experiment.name,
        question=experiment.question,
        workload=experiment.workload,
        candidates=[
            Candidate(
                variant.name,
                variant.application,
                variant.recipe,
                variant.sut,
                variant.driver,
                variant.parameters,
                variant.is_baseline,
                variant.offered_rate_rps,
            )
            for variant in experiment.variants.select_related("application", "recipe", "sut__profile", "driver")
        ],
        repetitions=repetitions or experiment.repetitions,
        order=experiment.order,
        primary_metric=experiment.primary_metric,
        margin_ratio=experiment.margin_ratio,
        rules=rules_of(experiment),
        labels={**experiment.labels, **check_labels(labels or {})},
    )
