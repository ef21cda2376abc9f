"""The only way a run starts: page, API and schedule all come here."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ValidationError

from agents.base.cpuset import parse_cpus
from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.spec import Application as SpecApplication
from agents.spec import Recipe as SpecRecipe
from agents.spec import RunSpec
from agents.steps.recipe import RecipeDocument, Value
from experiments.asking.launching.cpu_sets import check_cpu_sets
from experiments.models import Application, Experiment, Host, Member, Recipe, Role, Run, Variant, Workload
from experiments.models.experiments import HELD, OPEN
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.own_load import own_load, workload_with
from experiments.registry.documents.versions import insist_on_shell
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.experiments.blocks import run_order
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.addresses import address_of
from experiments.registry.hosts.driver_sets import check_parts, driver_set
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.runs.parameters import parameter_texts
from experiments.registry.teams import audit
from experiments.registry.teams.access import require, require_launch_on
from experiments.registry.teams.quotas import admit_runs
from experiments.registry.workers.outbox import announce
from experiments.running.ending.conclusion import conclude_experiment, conclude_trial
from experiments.running.queue.priorities import check_priority, check_retries

NEVER_STARTED = "Cancelled before it started; no host was touched."
MAX_REPETITIONS, MAX_VARIANTS = 100, 50
EXPERIMENT_RETRIES = 1
"""A repetition that is lost by no fault of its own leaves a hole in its block, so it gets a second try."""


@dataclass(frozen=True)
class Choice:
    """What one run is made of, before it is frozen."""

    application: Application
    recipe: Recipe
    workload: Workload
    sut: Host
    drivers: Sequence[Host]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    offered_rate_rps: float | None = None
    """In place of the workload's own rate."""
    concurrency: int | None = None
    """In place of the workload's connections or users."""


@dataclass(frozen=True)
class Candidate:
    """One variant of an experiment that is to be made."""

    name: str
    application: Application
    recipe: Recipe
    sut: Host
    drivers: Sequence[Host]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    is_baseline: bool = False
    offered_rate_rps: float | None = None
    concurrency: int | None = None


def freeze(choice: Choice) -> RunSpec:
    """The RunSpec of this choice, parameters filled in. RequestError names the field that does not fit."""
    _check_hosts(choice)
    document: RecipeDocument = content_of(choice.recipe)
    application = content_of(choice.application)
    try:
        built_in = built_in_values(application.server.instance(0).cpus, choice.sut)
        steps = document.resolve(choice.parameters, built_in=built_in)
    except PlanError as error:
        raise RequestError(error.message, field="parameters") from error
    try:
        spec = RunSpec(
            application=SpecApplication(
                **dict(application), name=choice.application.name, version=choice.application.version
            ),
            recipe=SpecRecipe(
                name=choice.recipe.name,
                version=choice.recipe.version,
                parameters=document.values(choice.parameters),
                steps=steps,
            ),
            workload=workload_with(
                choice.workload,
                len(choice.drivers),
                rate_rps=choice.offered_rate_rps,
                concurrency=choice.concurrency,
            ),
            sut=address_of(choice.sut),
            drivers=tuple(address_of(host) for host in sorted(choice.drivers, key=lambda host: int(host.pk))),
        )
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(problem, field=".".join(map(str, path))) from error
    check_cpu_sets(spec, choice.sut, choice.drivers)
    return spec


def built_in_values(server_cpus: str, sut: Host) -> dict[str, Value]:
    """Values that every recipe may use: `sut_cpu_count`, the CPUs that the server (each instance of it) may run on."""
    cpus = parse_cpus(server_cpus)
    if not cpus and sut.profile is not None:
        cpus = parse_cpus(sut.profile.facts.get("cpu.online", ""))
    return {"sut_cpu_count": len(cpus)} if cpus else {}


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
    require_launch_on(member, choice.sut, *choice.drivers)
    check_priority(member, priority)
    check_retries(retries)
    spec = freeze(choice)
    with transaction.atomic():
        run = _queue(member, choice, spec, number=admit_runs(member.team, 1))
        run.labels, run.tags, run.notes = dict(labels or {}), list(tags), notes
        run.priority, run.retries_left = priority, retries
        run.save()
        audit.record(member, "run.launch", f"run #{run.number}", after=_described(choice))
        announce(run)
    return run


def rerun(member: Member, run: Run) -> Run:
    """Queue the same versions, parameters and hosts again, outside any experiment."""
    if not (run.spec and run.application and run.recipe and run.workload and run.sut and run.drivers):
        raise Conflict("An imported run has nothing to execute again.")
    parameters = run.spec["recipe"]["parameters"]
    hosts = (run.sut, run.drivers.in_order)
    choice = Choice(run.application, run.recipe, run.workload, *hosts, parameters, *own_load(run.spec))
    return launch_run(member, choice, labels=run.labels, tags=run.tags)


def create_experiment(
    member: Member,
    *,
    name: str,
    workload: Workload,
    candidates: Sequence[Candidate],
    question: str = "",
    repetitions: int = 5,
    order: str = Experiment.Order.BLOCKS,
    primary_metric: str = "throughput_rps",
    margin_ratio: float = 0.03,
    labels: Mapping[str, str] | None = None,
    rules: Rules | None = None,
) -> Experiment:
    """Store an experiment as a draft, every variant checked as if it were launched now."""
    rules = rules or Rules()
    rules.check(member.team_id, order=order, variants=len(candidates))
    repetitions = rules.first_blocks(repetitions)
    _check_experiment(name, candidates, repetitions, margin_ratio)
    metric_named(member.team_id, primary_metric, field="primary_metric")
    for candidate in candidates:
        require_launch_on(member, candidate.sut, *candidate.drivers)
        try:
            freeze(choice_with(candidate, workload))
        except RequestError as error:
            raise RequestError(f"Variant {candidate.name}: {error.message}", field=error.field or "variants") from error
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
                drivers=driver_set(candidate.drivers),
                offered_rate_rps=candidate.offered_rate_rps,
                concurrency=candidate.concurrency,
            )
            for position, candidate in enumerate(candidates)
        )
        audit.record(member, "experiment.create", f"experiment {name}", after={"variants": len(candidates)})
    return experiment


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
        _check_repetitions(repetitions)
    variants = list(
        experiment.variants.select_related(
            "application", "recipe", "sut__profile", "drivers", "experiment__workload"
        ).prefetch_related("drivers__hosts")
    )
    for variant in variants:
        require_launch_on(member, variant.sut, *variant.drivers.in_order)
    with transaction.atomic():
        locked = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if locked.state == Experiment.State.RUNNING:
            raise Conflict("This experiment is running already.")
        if locked.state in HELD:
            raise Conflict(f"This experiment is {locked.get_state_display()}; resume it first.")
        if locked.state != Experiment.State.DRAFT and repetitions is None:
            raise Conflict("This experiment has run; say how many repetitions to add.")
        order = _first_runs(locked, variants, repetitions)
        specs = {v.pk: freeze(choice_with(v, locked.workload)) for v in variants}
        for variant in variants:
            variant.spec = specs[variant.pk].model_dump(mode="json")
        Variant.objects.bulk_update(variants, ["spec"])
        number = admit_runs(member.team, len(order))
        runs = []
        for offset, (block, variant) in enumerate(order):
            run = _queue(member, choice_with(variant, locked.workload), specs[variant.pk], number=number + offset)
            run.experiment, run.variant, run.block, run.labels = locked, variant, block, locked.labels
            run.is_demo, run.priority, run.retries_left = locked.is_demo, priority, retries
            runs.append(run)
        Run.objects.bulk_create(runs)
        locked.state, locked.state_reason = Experiment.State.RUNNING, ""
        locked.repetitions = max(order[-1][0] + 1 - locked.first_block, locked.repetitions)
        locked.save(update_fields=["state", "state_reason", "repetitions"])
        audit.record(member, "experiment.launch", f"experiment {locked.name}", after={"runs": len(runs)})
        for run in runs:
            announce(run)
    experiment.refresh_from_db()
    return runs


def cancel_run(member: Member, run: Run) -> None:
    """Ask for the end of a run; its worker stops the load and restores the host. A queued run ends at once."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        if locked.state == Run.State.FINISHED:
            raise Conflict(f"Run #{locked.number} is finished already.")
        now = timezone.now()
        locked.cancel_requested_at = locked.cancel_requested_at or now
        if locked.state == Run.State.QUEUED:
            locked.state, locked.outcome = Run.State.FINISHED, Run.Outcome.CANCELLED
            locked.failure = NEVER_STARTED
            locked.finished_at = now
        locked.save(update_fields=["cancel_requested_at", "state", "outcome", "failure", "finished_at"])
        audit.record(member, "run.cancel", f"run #{locked.number}")
        if locked.state == Run.State.FINISHED and locked.experiment_id is not None:
            conclude_experiment(locked.experiment_id)
        if locked.state == Run.State.FINISHED:
            conclude_trial(locked)
    run.refresh_from_db()


def cancel_experiment(member: Member, experiment: Experiment) -> None:
    """Cancel the experiment and every run of it that is not finished. Conflict when it has come to its end already."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        # Runs before the experiment, as everywhere: whoever ends a run locks them in this order.
        runs = experiment.runs.exclude(state=Run.State.FINISHED)
        ids = list(runs.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
        locked = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment.pk)
        if locked.state not in OPEN:
            raise Conflict(f"This experiment is {locked.get_state_display().lower()} already.")
        # Looked at again: one that ended meanwhile may have queued its retry.
        open_runs = experiment.runs.exclude(state=Run.State.FINISHED)
        open_runs.filter(cancel_requested_at=None).update(cancel_requested_at=Now())
        open_runs.filter(state=Run.State.QUEUED).update(
            state=Run.State.FINISHED,
            outcome=Run.Outcome.CANCELLED,
            failure=NEVER_STARTED,
            finished_at=Now(),
        )
        locked.state = Experiment.State.CANCELLED
        locked.save(update_fields=["state"])
        audit.record(member, "experiment.cancel", f"experiment {locked.name}", after={"runs": len(ids)})
        conclude_experiment(experiment.pk)
    experiment.refresh_from_db()


def _described(choice: Choice) -> dict[str, object]:
    """The choice in names, for the audit trail."""
    parts = {name: str(getattr(choice, name)) for name in ("application", "recipe", "workload", "sut")}
    drivers = ", ".join(host.name for host in choice.drivers)
    return {**parts, "drivers": drivers, "parameters": dict(choice.parameters)}


def choice_with(candidate: Candidate | Variant, workload: Workload) -> Choice:
    """What a run of this variant is made of."""
    return Choice(
        application=candidate.application,
        recipe=candidate.recipe,
        workload=workload,
        sut=candidate.sut,
        drivers=candidate.drivers.in_order if isinstance(candidate, Variant) else candidate.drivers,
        parameters=candidate.parameters,
        offered_rate_rps=candidate.offered_rate_rps,
        concurrency=candidate.concurrency,
    )


def _queue(member: Member, choice: Choice, spec: RunSpec, *, number: int) -> Run:
    insist_on_shell(member, choice.recipe, spec.recipe.steps)
    return Run(
        team=member.team,
        number=number,
        spec=spec.model_dump(mode="json"),
        parameters=parameter_texts(spec.recipe.parameters),
        application=choice.application,
        recipe=choice.recipe,
        workload=choice.workload,
        sut=choice.sut,
        drivers=driver_set(choice.drivers),
        created_by_id=member.user_id,
    )


def _first_runs(experiment: Experiment, variants: list[Variant], repetitions: int | None) -> list[tuple[int, Variant]]:
    """What a launch queues: the A/A check alone when it comes first, else the next blocks."""
    last = experiment.runs.order_by("-block").values_list("block", flat=True).first()
    if last is None and experiment.aa_first:
        return [(block, v) for block in range(experiment.first_block) for v in variants if v.is_baseline]
    start = experiment.first_block if last is None else max(last + 1, experiment.first_block)
    blocks = range(start, start + (repetitions or experiment.repetitions))
    return run_order(variants, blocks, order=experiment.order, seed=experiment.seed)


def _check_hosts(choice: Choice) -> None:
    check_parts(choice.sut, choice.drivers)
    hosts = {host.team_id for host in (choice.sut, *choice.drivers)}
    teams = {*hosts, choice.application.team_id, choice.recipe.team_id}
    if teams != {choice.workload.team_id}:
        raise RequestError("All parts of a run must belong to one team.")


def _check_repetitions(repetitions: int) -> None:
    if not 1 <= repetitions <= MAX_REPETITIONS:
        raise RequestError(f"Repetitions must be between 1 and {MAX_REPETITIONS}.", field="repetitions")


def _check_experiment(name: str, candidates: Sequence[Candidate], repetitions: int, margin_ratio: float) -> None:
    if not name.strip():
        raise RequestError("Give the experiment a name.", field="name")
    _check_repetitions(repetitions)
    if not 0 < margin_ratio < 1:
        raise RequestError("The margin must be between 0 and 1 (0.03 is 3 %).", field="margin_ratio")
    if not 1 <= len(candidates) <= MAX_VARIANTS:
        raise RequestError(f"An experiment has between 1 and {MAX_VARIANTS} variants.", field="variants")
    names = [candidate.name for candidate in candidates]
    if len(set(names)) != len(names):
        raise RequestError("Two variants have the same name.", field="variants")
    if sum(candidate.is_baseline for candidate in candidates) > 1:
        raise RequestError("Only one variant can be the baseline.", field="variants")
