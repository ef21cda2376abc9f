"""Making an experiment: a draft with its variants, every one of them checked as if it were launched now."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from agents.spec import WorkloadDocument
from experiments.asking.launching.choices import Candidate, choice_with, freeze_for
from experiments.models import Experiment, Member, Variant, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.standing_metric import standing_metric
from experiments.registry.errors import RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.naming import check_experiment_name, check_title
from experiments.registry.teams import audit
from experiments.registry.teams.access import require_launch_on

MAX_REPETITIONS, MAX_VARIANTS = 100, 50


def create_experiment(
    member: Member,
    *,
    name: str,
    workload: Workload,
    candidates: Sequence[Candidate],
    question: str = "",
    repetitions: int = 5,
    order: str = Experiment.Order.BLOCKS,
    primary_metric: str = "",
    margin_ratio: float = 0.03,
    labels: Mapping[str, str] | None = None,
    rules: Rules | None = None,
    profilers: Sequence[str] | None = None,
) -> Experiment:
    """Store an experiment as a draft, every variant checked as if it were launched now.

    Without a `primary_metric` it is judged by the figure that stands for a run of the workload. `profilers` profile a
    twin of each run; None = those that the workload names.
    """
    rules = rules or Rules()
    named: WorkloadDocument = content_of(workload)
    profilers = named.profilers if profilers is None else tuple(profilers)
    primary_metric = primary_metric or standing_metric(workload)
    rules.check(member.team_id, order=order, variants=len(candidates))
    repetitions = rules.first_blocks(repetitions)
    if "\0" in name or not Experiment.objects.for_team(member.team).filter(name=name).exists():
        check_experiment_name(name)  # copies of one that is called so already may be made, with its variants
        for index, candidate in enumerate(candidates):
            check_title(candidate.name, "A variant", field=f"variants.{index}.name")
    _check_experiment(candidates, repetitions, margin_ratio)
    metric_named(member.team_id, primary_metric, field="primary_metric")
    for candidate in candidates:
        require_launch_on(member, *candidate.hosts)
        try:
            freeze_for(member, replace(choice_with(candidate, workload), profilers=tuple(profilers)))
        except RequestError as error:
            raise type(error)(f"Variant {candidate.name}: {error.message}", field=error.field or "variants") from error
    with transaction.atomic():
        experiment = Experiment.objects.create(
            team=member.team,
            name=name,
            question=question,
            workload=workload,
            repetitions=repetitions,
            order=order,
            primary_metric=primary_metric,
            margin_ratio=margin_ratio,
            **rules.fields(),
            profilers=list(profilers),
            seed=random.SystemRandom().randrange(1 << 31),
            labels=dict(labels or {}),
            created_by_id=member.user_id,
        )
        has_baseline = any(candidate.is_baseline for candidate in candidates)
        Variant.objects.bulk_create(
            Variant(
                experiment=experiment,
                name=candidate.name,
                position=position,
                is_baseline=candidate.is_baseline or (position == 0 and not has_baseline),
                application=candidate.application,
                recipe=candidate.recipe,
                parameters=dict(candidate.parameters),
                sut=candidate.sut,
                drivers=driver_set(candidate.drivers, candidate.members),
                offered_rate_rps=candidate.offered_rate_rps,
                concurrency=candidate.concurrency,
            )
            for position, candidate in enumerate(candidates)
        )
        audit.record(member, "experiment.create", f"experiment {name}", after={"variants": len(candidates)})
    return experiment


def check_repetitions(repetitions: int) -> None:
    """RequestError when it is no number of repetitions that an experiment may have or get."""
    if not 1 <= repetitions <= MAX_REPETITIONS:
        raise RequestError(f"Repetitions must be between 1 and {MAX_REPETITIONS}.", field="repetitions")


def check_margin(margin_ratio: float) -> None:
    """RequestError when it is no relative change that an experiment may take for none."""
    if not 0 < margin_ratio < 1:
        raise RequestError("The margin must be between 0 and 1 (0.03 is 3 %).", field="margin_ratio")


def _check_experiment(candidates: Sequence[Candidate], repetitions: int, margin_ratio: float) -> None:
    check_repetitions(repetitions)
    check_margin(margin_ratio)
    if not 1 <= len(candidates) <= MAX_VARIANTS:
        raise RequestError(f"An experiment has between 1 and {MAX_VARIANTS} variants.", field="variants")
    names = [candidate.name for candidate in candidates]
    if len(set(names)) != len(names):
        raise RequestError("Two variants have the same name.", field="variants")
    if sum(candidate.is_baseline for candidate in candidates) > 1:
        raise RequestError("Only one variant can be the baseline.", field="variants")
