"""Experiments: create, launch, cancel, and the verdict that CI waits for."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query as QueryOf
from ninja import Router
from ninja.params.functions import Body as FromBody
from ninja.params.functions import Query
from ninja.responses import Status

from experiments.api.choices import Time
from experiments.api.experiment_shapes import (
    AaOut,
    CopyIn,
    ExperimentChange,
    ExperimentIn,
    ExperimentOut,
    ExperimentPage,
    ExperimentRow,
    ForecastOut,
    HostCanaryOut,
    LaunchIn,
    LookOut,
    VariantIn,
    VariantOut,
)
from experiments.api.finding import find_experiment, named_document, named_host, named_hosts, named_members
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import tell_pages_of
from experiments.api.plumbing.sparse import FIELDS, sparse
from experiments.api.several import several
from experiments.api.shapes import MAX_ID, Named, RunRow, experiment_url
from experiments.api.verdicts import MAX_WAIT_S, RuleQuery, VerdictOut, absolute, waited_for
from experiments.asking.launching import cancelling, creating, launch, pausing
from experiments.asking.launching.choices import Candidate, typed_parameters
from experiments.asking.launching.copies import copy_experiment
from experiments.asking.launching.editing import Edit, edit_experiment
from experiments.asking.launching.forecast import Arm, forecast
from experiments.asking.launching.stopping import spent_s
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.evidence.host_canaries import hosts_before
from experiments.judging.gate.decision import experiment_gate
from experiments.judging.verdicts.looks import looks_of
from experiments.models import Application, Experiment, Member, Recipe, Role, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.standing_metric import standing_metric
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.notes.labels import check_labels
from experiments.registry.teams.access import require
from experiments.running.queue.priorities import PRIORITIES, check_priority
from experiments.running.queue.waiting import expected_end
from experiments.telling.run_list.conditions import parse_time

router = Router(auth=READ, tags=["experiments"])


@router.get("", response=ExperimentPage)
def list_experiments(
    request: HttpRequest,
    name: str = Query("", max_length=120, description="Exactly this name"),
    state: Literal["", "draft", "running", "paused", "blocked", "finished", "cancelled"] = "",
    name__in: str = Query("", max_length=4000, description="One of these, with commas between"),
    state__in: str = Query("", max_length=200, description="One of these, with commas between"),
    created_at__gte: Time = Query(None, max_length=40, description="Made at or after this time"),
    created_at__lte: Time = Query(None, max_length=40, description="Made at or before this time"),
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
    fields: str = FIELDS,
) -> Any:
    """Experiments, the newest first."""
    member = member_of(request)
    found = Experiment.objects.for_team(member.team).select_related("workload", "created_by")
    wanted: dict[str, Any] = {key: value for key, value in (("name", name), ("state", state)) if value}
    if name__in:
        wanted["name__in"] = several(name__in, "name__in")
    if state__in:
        wanted["state__in"] = several(state__in, "state__in", Experiment.State.values)
    for key, text in (("created_at__gte", created_at__gte), ("created_at__lte", created_at__lte)):
        if text:
            wanted[key] = parse_time(text, key)
    rows, before = found.filter(**wanted).newest_page(cursor or None, limit)
    page = ExperimentPage(
        items=[ExperimentRow.of(row, member.team.slug) for row in rows],
        next_cursor=str(before or ""),
    )
    tell_pages_of(request, page)
    return sparse(page, ExperimentRow, fields)


@router.post("", response={201: ExperimentOut}, auth=LAUNCH)
@idempotent
def create_experiment(request: HttpRequest, payload: ExperimentIn) -> Status[ExperimentOut]:
    """Store an experiment as a draft; every variant is checked as if it were launched now."""
    member = member_of(request)
    candidates = _candidates(member, payload)
    experiment = creating.create_experiment(
        member,
        name=payload.name,
        question=payload.question,
        workload=named_document(member, Workload, payload.workload, field="workload"),
        candidates=candidates,
        repetitions=payload.repetitions,
        order=payload.order,
        primary_metric=payload.primary_metric,
        margin_ratio=payload.margin_ratio,
        labels=check_labels(payload.labels),
        rules=payload.rules(),
        profilers=payload.profilers,
    )
    return Status(201, _detail(member, experiment))


@router.post("/forecasts", response=ForecastOut, auth=LAUNCH)
def forecast_experiment(request: HttpRequest, payload: ExperimentIn) -> ForecastOut:
    """What an experiment would cost by the past of its recipes, and what it could find; nothing is stored."""
    member = member_of(request)
    require(member, Role.LAUNCHER)
    candidates = _candidates(member, payload)
    rules = payload.rules()
    rules.check(member.team_id, order=payload.order, variants=len(candidates))
    has_baseline = any(candidate.is_baseline for candidate in candidates)
    workload = named_document(member, Workload, payload.workload, field="workload")
    metric = metric_named(member.team_id, payload.primary_metric or standing_metric(workload), field="primary_metric")
    found = forecast(
        workload,
        [
            Arm(one.name, one.recipe, one.sut, one.is_baseline or (index == 0 and not has_baseline))
            for index, one in enumerate(candidates)
        ],
        rules=rules,
        repetitions=payload.repetitions,
        metric=metric.name,
        margin_ratio=payload.margin_ratio,
        order=payload.order,
        profilers=payload.profilers,
    )
    return ForecastOut.of(found)


@router.get("/{int:experiment_id}", response=ExperimentOut)
def get_experiment(request: HttpRequest, experiment_id: int, fields: str = FIELDS) -> Any:
    """One experiment with its variants and runs."""
    member = member_of(request)
    return sparse(_detail(member, find_experiment(member, experiment_id)), ExperimentOut, fields)


@router.patch("/{int:experiment_id}", response=ExperimentOut, auth=LAUNCH)
def change_experiment(request: HttpRequest, experiment_id: int, payload: ExperimentChange) -> ExperimentOut:
    """Another name or question; of a draft also labels, repetitions, order, metrics and margin. 409 for those later."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    edit_experiment(member, experiment, Edit(**payload.model_dump(exclude_none=True)))
    return _detail(member, experiment)


@router.post("/copies", response={202: ExperimentOut}, auth=LAUNCH)
@idempotent
def launch_copy(request: HttpRequest, payload: CopyIn) -> Status[ExperimentOut]:
    """Launch a copy of an experiment, so that the same question can be asked for every commit."""
    member = member_of(request)
    priority = PRIORITIES[payload.priority]
    check_priority(member, priority)  # before a copy is stored that could not be launched
    original = _named(member, payload.experiment)
    experiment = copy_experiment(member, original, labels=payload.labels, repetitions=payload.repetitions)
    launch.launch_experiment(member, experiment, priority=priority, retries=payload.retries)
    return Status(202, _detail(member, experiment))


@router.post("/{int:experiment_id}/launch", response={202: ExperimentOut}, auth=LAUNCH)
@idempotent
def launch_experiment(
    request: HttpRequest, experiment_id: int, payload: LaunchIn | None = FromBody(None)
) -> Status[ExperimentOut]:
    """Queue the runs of a draft, or more repetitions of an experiment that has run."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    asked = payload or LaunchIn()
    priority = PRIORITIES[asked.priority]
    launch.launch_experiment(
        member, experiment, repetitions=asked.repetitions, priority=priority, retries=asked.retries
    )
    return Status(202, _detail(member, experiment))


@router.post("/{int:experiment_id}/cancel", response={202: ExperimentOut}, auth=LAUNCH)
@idempotent
def cancel_experiment(request: HttpRequest, experiment_id: int) -> Status[ExperimentOut]:
    """Cancel every run that is not finished; running ones restore their hosts first."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    cancelling.cancel_experiment(member, experiment)
    return Status(202, _detail(member, experiment))


@router.post("/{int:experiment_id}/pause", response={202: ExperimentOut}, auth=LAUNCH)
@idempotent
def pause_experiment(request: HttpRequest, experiment_id: int) -> Status[ExperimentOut]:
    """Start none of its queued runs until it is resumed; a run that is under way comes to its end."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    pausing.pause_experiment(member, experiment)
    return Status(202, _detail(member, experiment))


@router.post("/{int:experiment_id}/resume", response={202: ExperimentOut}, auth=LAUNCH)
@idempotent
def resume_experiment(request: HttpRequest, experiment_id: int) -> Status[ExperimentOut]:
    """Go on with a paused experiment, or with one that its A/A check blocked."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    pausing.resume_experiment(member, experiment)
    return Status(202, _detail(member, experiment))


@router.get("/{int:experiment_id}/verdict", response=VerdictOut)
async def experiment_verdict(
    request: HttpRequest,
    experiment_id: int,
    asked: QueryOf[RuleQuery],
    wait: int = Query(0, ge=0, le=MAX_WAIT_S, description="Seconds"),
) -> VerdictOut:
    """pass, fail, inconclusive or error; with `wait`, once all runs are finished or that time is over.

    The experiment's own metrics, margin and baseline decide, unless the gate asks for others.
    """
    member = member_of(request)
    rules = asked.as_rules()

    def look() -> VerdictOut:
        experiment = find_experiment(member, experiment_id)
        url = absolute(request, experiment_url(member.team.slug, experiment.pk))
        return VerdictOut.of(experiment_gate(experiment, rules), title=experiment.name, url=url)

    return await waited_for(look, wait)


def _candidates(member: Member, payload: ExperimentIn) -> list[Candidate]:
    return [_candidate(member, variant, f"variants.{index}") for index, variant in enumerate(payload.variants)]


def _candidate(member: Member, variant: VariantIn, place: str) -> Candidate:
    application = named_document(member, Application, variant.application, field=f"{place}.application")
    recipe = named_document(member, Recipe, variant.recipe, field=f"{place}.recipe")
    return Candidate(
        name=variant.name,
        application=application,
        recipe=recipe,
        sut=named_host(member, variant.sut, field=f"{place}.sut"),
        drivers=named_hosts(member, variant.drivers, field=f"{place}.drivers"),
        parameters=typed_parameters(content_of(recipe), variant.parameters, field=f"{place}.parameters"),
        members=named_members(member, variant.members, field=f"{place}.members"),
        is_baseline=variant.is_baseline,
        offered_rate_rps=variant.offered_rate_rps,
        concurrency=variant.concurrency,
    )


def _named(member: Member, reference: int | str) -> Experiment:
    key = "pk" if isinstance(reference, int) else "name"
    found: Experiment | None = (
        Experiment.objects.for_team(member.team)
        .select_related("workload")
        .filter(**{key: reference})
        .order_by("-id")
        .first()
    )
    if found is None:
        raise RequestError(f"There is no experiment {reference!r}.", field="experiment")
    return found


def _detail(member: Member, experiment: Experiment) -> ExperimentOut:
    team = member.team.slug
    variants = list(
        experiment.variants.select_related("application", "recipe", "sut", "drivers").prefetch_related("drivers__hosts")
    )
    runs = experiment_runs(experiment)
    checked = hosts_before(experiment)
    return ExperimentOut(
        **ExperimentRow.of(experiment, team).model_dump(),
        hosts_before=checked.sentence,
        canaries=[HostCanaryOut.of(one) for one in checked.checks],
        expected_end_at=expected_end(member.team, runs),
        spent_s=spent_s(runs),
        looks=[look for pair in looks_of(experiment, variants, runs) for look in LookOut.all_of(pair)],
        aa_result=AaOut(**experiment.aa_result) if experiment.aa_result else None,
        variants=[
            VariantOut(
                name=variant.name,
                is_baseline=variant.is_baseline,
                application=Named(name=variant.application.name, version=variant.application.version),
                recipe=Named(name=variant.recipe.name, version=variant.recipe.version),
                parameters=variant.parameters,
                sut=variant.sut.name,
                drivers=variant.drivers.names,
                members={role: host.name for role, host in variant.drivers.members.items()},
                offered_rate_rps=variant.offered_rate_rps,
                concurrency=variant.concurrency,
            )
            for variant in variants
        ],
        runs=[RunRow.of(run, team) for run in runs],
    )
