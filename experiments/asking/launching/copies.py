"""Running an experiment again under other labels: CI asks the same question for every commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.models import Document, Experiment, Member
from experiments.registry.experiments.rules import rules_of
from experiments.registry.notes.labels import check_labels

AnyDocument = TypeVar("AnyDocument", bound=Document)


def newest_version(document: AnyDocument) -> AnyDocument:
    """The newest version of this name, which may be this one; an archived name has none, so it stays as it is."""
    versions = type(document).objects.filter(team_id=document.team_id, name=document.name)
    return versions.newest_versions().first() or document


def copy_experiment(
    member: Member,
    experiment: Experiment,
    *,
    labels: Mapping[str, str] | None = None,
    repetitions: int | None = None,
    newest: bool = False,
) -> Experiment:
    """A draft with the same variants, workload and rules; `labels` are added to the original's.

    `newest`: with the newest versions of its documents.
    """
    return create_experiment(
        member,
        name=experiment.name,
        question=experiment.question,
        workload=newest_version(experiment.workload) if newest else experiment.workload,
        candidates=[
            Candidate(
                variant.name,
                newest_version(variant.application) if newest else variant.application,
                newest_version(variant.recipe) if newest else variant.recipe,
                variant.sut,
                variant.drivers.in_order,
                variant.parameters,
                variant.is_baseline,
                variant.offered_rate_rps,
                variant.concurrency,
                variant.drivers.members,
            )
            for variant in experiment.variants.select_related("application", "recipe", "sut__profile", "drivers")
        ],
        repetitions=repetitions or experiment.repetitions,
        order=experiment.order,
        primary_metric=experiment.primary_metric,
        margin_ratio=experiment.margin_ratio,
        rules=rules_of(experiment),
        profilers=experiment.profilers,
        labels={**experiment.labels, **check_labels(labels or {})},
    )
