"""Launching: page, API, schedule, search, bisection and tuning search all come here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.db import transaction

from experiments.asking.launching.choices import Choice, choice_with, freeze_for
from experiments.asking.launching.creating import check_repetitions
from experiments.asking.launching.factory import Setup, Terms, queue_blocks, queue_run
from experiments.models import Experiment, Member, Run, Variant
from experiments.models.experiments import HELD
from experiments.registry.documents.own_load import own_load
from experiments.registry.errors import Conflict
from experiments.registry.experiments.blocks import run_order, with_twins
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.teams import audit
from experiments.registry.teams.access import require_launch_on
from experiments.registry.teams.quotas import admit_runs
from experiments.running.queue.priorities import check_priority, check_retries

EXPERIMENT_RETRIES = 1
"""A repetition that is lost by no fault of its own leaves a hole in its block, so it gets a second try."""


def launch_run(
    member: Member,
    choice: Choice,
    *,
    labels: Mapping[str, str] | None = None,
    tags: Sequence[str] = (),
    notes: str = "",
    priority: int = Run.Priority.NORMAL,
    retries: int = 0,
) -> Run:
    """Queue one run. The frozen spec and the run's row are written in one transaction; the message is only a hint.

    `retries`: how often it is queued again when BenchHub or a host was at fault.
    """
    require_launch_on(member, *choice.hosts)
    check_priority(member, priority)
    check_retries(retries)
    parts = (choice.application.pk, choice.recipe.pk, choice.workload.pk, choice.sut.pk)
    spec = freeze_for(member, choice).model_dump(mode="json")
    terms = Terms(member.user_id, priority, retries, labels=dict(labels or {}), tags=tuple(tags), notes=notes)
    with transaction.atomic():
        setup = Setup(spec, *parts, driver_set(choice.drivers, choice.members).pk)
        run = queue_run(member.team, setup, terms, number=admit_runs(member.team, 1))
        audit.record(member, "run.launch", f"run #{run.number}", after=_described(choice))
    return run


def rerun(member: Member, run: Run) -> Run:
    """Queue the same versions, parameters and hosts again, outside any experiment."""
    if not (run.spec and run.application and run.recipe and run.workload and run.sut and run.drivers):
        raise Conflict("An imported run has nothing to execute again.")
    parameters = run.spec["recipe"]["parameters"]
    hosts = (run.sut, run.drivers.in_order)
    load = own_load(run.spec)
    choice = Choice(run.application, run.recipe, run.workload, *hosts, parameters, *load, run.drivers.members)
    choice = replace(choice, profilers=tuple(run.spec.get("profilers", ())))
    return launch_run(member, choice, labels=run.labels, tags=run.tags)


def launch_experiment(
    member: Member,
    experiment: Experiment,
    *,
    repetitions: int | None = None,
    priority: int = Run.Priority.NORMAL,
    retries: int = EXPERIMENT_RETRIES,
) -> list[Run]:
    """Queue the runs of an experiment: all of them, or `repetitions` more blocks of a finished one."""
    check_priority(member, priority)
    check_retries(retries)
    if repetitions is not None:
        check_repetitions(repetitions)
    variants = list(
        experiment.variants.select_related(
            "application", "recipe", "sut__profile", "drivers", "experiment__workload"
        ).prefetch_related("drivers__hosts")
    )
    for variant in variants:
        require_launch_on(member, variant.sut, *variant.drivers.everyone)
    with transaction.atomic():
        locked = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if locked.state == Experiment.State.RUNNING:
            raise Conflict("This experiment is running already.")
        if locked.state in HELD:
            raise Conflict(f"This experiment is {locked.get_state_display()}; resume it first.")
        if locked.state != Experiment.State.DRAFT and repetitions is None:
            raise Conflict("This experiment has run; say how many repetitions to add.")
        order = with_twins(locked, _first_runs(locked, variants, repetitions))
        for variant in variants:
            variant.spec = freeze_for(member, choice_with(variant, locked.workload)).model_dump(mode="json")
        Variant.objects.bulk_update(variants, ["spec"])
        terms = Terms(member.user_id, priority, retries, labels=locked.labels, is_demo=locked.is_demo)
        runs = queue_blocks(locked, order, terms, number=admit_runs(member.team, len(order)))
        locked.state, locked.state_reason = Experiment.State.RUNNING, ""
        locked.repetitions = max(order[-1][0] + 1 - locked.first_block, locked.repetitions)
        locked.save(update_fields=["state", "state_reason", "repetitions"])
        audit.record(member, "experiment.launch", f"experiment {locked.name}", after={"runs": len(runs)})
    experiment.refresh_from_db()
    return runs


def _described(choice: Choice) -> dict[str, object]:
    """The choice in names, for the audit trail."""
    parts = {name: str(getattr(choice, name)) for name in ("application", "recipe", "workload", "sut")}
    drivers = ", ".join(host.name for host in choice.drivers)
    members = {"members": {role: host.name for role, host in choice.members.items()}} if choice.members else {}
    profilers = {"profilers": ", ".join(choice.profilers)} if choice.profilers else {}
    return {**parts, **members, **profilers, "drivers": drivers, "parameters": dict(choice.parameters)}


def _first_runs(experiment: Experiment, variants: list[Variant], repetitions: int | None) -> list[tuple[int, Variant]]:
    """What a launch queues: the A/A check alone when it comes first, else the next blocks."""
    last = experiment.runs.order_by("-block").values_list("block", flat=True).first()
    if last is None and experiment.aa_first:
        return [(block, v) for block in range(experiment.first_block) for v in variants if v.is_baseline]
    start = experiment.first_block if last is None else max(last + 1, experiment.first_block)
    blocks = range(start, start + (repetitions or experiment.repetitions))
    return run_order(variants, blocks, order=experiment.order, seed=experiment.seed)
