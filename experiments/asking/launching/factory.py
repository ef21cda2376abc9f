"""The one factory of queued runs: launches, added repetitions, retries and trials become rows here and nowhere else.

A row holds the frozen specification and what describes it, so nothing of a run changes while it waits. Its fingerprint
follows when its hosts have been seen. The message to a worker is a hint; what is due stands in the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.models import Experiment, Run, Team, Variant
from experiments.registry.runs.numbers import reserve_numbers
from experiments.registry.runs.parameters import parameters_of
from experiments.registry.workers.outbox import announce

CARRIED = (
    "team_id",
    "origin",
    "experiment_id",
    "variant_id",
    "block",
    "spec",
    "profiled",
    "parameters",
    "application_id",
    "recipe_id",
    "workload_id",
    "sut_id",
    "drivers_id",
    "labels",
    "tags",
    "notes",
    "notes_by_id",
    "notes_at",
    "created_by_id",
    "priority",
    "is_demo",
)
"""The columns that a run has before anything has happened to it, and that the same run once more has, too."""


@dataclass(frozen=True)
class Setup:
    """What a run executes, frozen, and the rows that it was made of."""

    spec: Mapping[str, Any]
    application_id: int
    recipe_id: int
    workload_id: int
    sut_id: int
    drivers_id: int


@dataclass(frozen=True)
class Terms:
    """For whom a run waits and how urgently, how often it may be tried again, and what people call it by."""

    created_by_id: int | None
    priority: int = Run.Priority.NORMAL
    retries: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    notes: str = ""
    is_demo: bool = False


def queue_run(team: Team, setup: Setup, terms: Terms, *, number: int) -> Run:
    """Queue one run outside any experiment, under a number that is reserved for it. Call in a transaction."""
    (run,) = _queued([_row(team.pk, setup, terms, number)])
    return run


def queue_blocks(
    experiment: Experiment, order: Sequence[tuple[int, Variant, bool]], terms: Terms, *, number: int
) -> list[Run]:
    """Queue repetitions of frozen variants, in order of (block, variant, whether it is the profiled twin).

    They are numbered from `number` on.
    """
    rows = []
    for offset, (block, variant, is_twin) in enumerate(order):
        setup = Setup(
            {**(variant.spec or {}), **({"profilers": list(experiment.profilers)} if is_twin else {})},
            variant.application_id,
            variant.recipe_id,
            experiment.workload_id,
            variant.sut_id,
            variant.drivers_id,
        )
        row = _row(experiment.team_id, setup, terms, number + offset)
        row.experiment, row.variant, row.block = experiment, variant, block
        rows.append(row)
    return _queued(rows)


def queue_again(run: Run) -> Run:
    """Queue the same run once more, with one retry less."""
    again = Run(**{name: getattr(run, name) for name in CARRIED}, number=reserve_numbers(run.team, 1))
    again.retry_of, again.retries_left = run, run.retries_left - 1
    (queued,) = _queued([again])
    return queued


def _row(team_id: int, setup: Setup, terms: Terms, number: int) -> Run:
    return Run(
        team_id=team_id,
        number=number,
        spec=setup.spec,
        profiled=bool(setup.spec.get("profilers")),
        parameters=parameters_of(setup.spec),
        application_id=setup.application_id,
        recipe_id=setup.recipe_id,
        workload_id=setup.workload_id,
        sut_id=setup.sut_id,
        drivers_id=setup.drivers_id,
        created_by_id=terms.created_by_id,
        priority=terms.priority,
        retries_left=terms.retries,
        labels=dict(terms.labels),
        tags=list(terms.tags),
        notes=terms.notes,
        is_demo=terms.is_demo,
    )


def _queued(rows: Sequence[Run]) -> list[Run]:
    stored: list[Run] = Run.objects.bulk_create(rows)
    announce(*stored)
    return stored
