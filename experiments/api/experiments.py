"""Experiments: create, launch, cancel, and the verdict that CI waits for."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Body as FromBody
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments import launch
from experiments.api.auth import LAUNCH, READ, member_of
from experiments.api.finding import find_experiment, named_document, named_host
from experiments.api.idempotency import idempotent
from experiments.api.shapes import (
    MAX_ID,
    Body,
    Flag,
    Labels,
    Named,
    Parameters,
    Priority,
    Reference,
    Retries,
    RunRow,
    Whole,
    experiment_url,
)
from experiments.api.verdicts import MAX_WAIT_S, VerdictOut, absolute, waited_for
from experiments.copies import copy_experiment
from experiments.errors import RequestError
from experiments.gate import experiment_gate
from experiments.history import experiment_runs
from experiments.labels import check_labels
from experiments.models import Application, Experiment, Member, Recipe, Workload
from experiments.priorities import PRIORITIES, check_priority
from experiments.waiting import expected_end

router = Router(auth=READ, tags=["experiments"])


class VariantOut(BaseModel):
    name: str
    is_baseline: bool
    application: Named
    recipe: Named
    parameters: Parameters
    sut: str
    driver: str


class ExperimentRow(BaseModel):
    id: int
    url: str
    name: str
    question: str
    state: str
    workload: Named
    repetitions: int
    order: str
    primary_metric: str
    margin_ratio: float
    labels: dict[str, str]
    created_by: str | None
    created_at: datetime

    @classmethod
    def of(cls, experiment: Experiment, team: str) -> ExperimentRow:
        return cls(
            id=experiment.pk,
            url=experiment_url(team, experiment.pk),
            name=experiment.name,
            question=experiment.question,
            state=experiment.state,
            workload=Named(name=experiment.workload.name, version=experiment.workload.version),
            repetitions=experiment.repetitions,
            order=experiment.order,
            primary_metric=experiment.primary_metric,
            margin_ratio=experiment.margin_ratio,
            labels=experiment.labels,
            created_by=experiment.created_by.get_username() if experiment.created_by else None,
            created_at=experiment.created_at,
        )


class ExperimentOut(ExperimentRow):
    expected_end_at: datetime | None = Field(
        description="An estimate of the end of its last run; null when there is none"
    )
    variants: list[VariantOut]
    runs: list[RunRow]


class ExperimentPage(BaseModel):
    items: list[ExperimentRow]
    next_cursor: str = Field(description="Empty at the end")


class VariantIn(Body):
    name: str = Field(min_length=1, max_length=120)
    application: Reference
    recipe: Reference
    sut: str = Field(min_length=1, max_length=120)
    driver: str = Field(min_length=1, max_length=120)
    parameters: Parameters = {}
    is_baseline: Flag = False


class ExperimentIn(Body):
    name: str = Field(min_length=1, max_length=120)
    question: str = Field("", max_length=400)
    workload: Reference
    variants: list[VariantIn] = Field(min_length=1, max_length=50)
    repetitions: Whole = Field(5, ge=1, le=100)
    order: Literal["blocks", "interleaved", "sequential"] = "blocks"
    primary_metric: str = Field("throughput_rps", max_length=60)
    margin_ratio: float = Field(0.03, gt=0, lt=1)
    labels: Labels = {}


class LaunchIn(Body):
    repetitions: Whole | None = Field(None, ge=1, le=100, description="More blocks for an experiment that has run")
    priority: Priority = "normal"
    retries: Retries = launch.EXPERIMENT_RETRIES


class CopyIn(Body):
    """Names the experiment in the body, so that a repeated request stays the same one when a copy has the same name."""

    experiment: Whole | str = Field(description="Its number, or its name: then the newest one of this name")
    repetitions: Whole | None = Field(None, ge=1, le=100, description="Else as in the experiment")
    labels: Labels = Field({}, description="Added to the labels of the experiment")
    priority: Priority = "normal"
    retries: Retries = launch.EXPERIMENT_RETRIES


@router.get("", response=ExperimentPage)
def list_experiments(
    request: HttpRequest,
    name: str = Query("", max_length=120, description="Exactly this name"),
    state: Literal["", "draft", "running", "finished", "cancelled"] = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> ExperimentPage:
    """Experiments, the newest first."""
    member = member_of(request)
    found = Experiment.objects.for_team(member.team).select_related("workload", "created_by").order_by("-id")
    wanted = {key: value for key, value in (("name", name), ("state", state)) if value}
    if cursor:
        wanted["id__lt"] = str(cursor)
    rows = list(found.filter(**wanted)[: limit + 1])
    return ExperimentPage(
        items=[ExperimentRow.of(row, member.team.slug) for row in rows[:limit]],
        next_cursor=str(rows[limit - 1].pk) if len(rows) > limit else "",
    )


@router.post("", response={201: ExperimentOut}, auth=LAUNCH)
@idempotent
def create_experiment(request: HttpRequest, payload: ExperimentIn) -> Status[ExperimentOut]:
    """Store an experiment as a draft; every variant is checked as if it were launched now."""
    member = member_of(request)
    candidates = [
        launch.Candidate(
            name=variant.name,
            application=named_document(member, Application, variant.application, field=f"variants.{index}.application"),
            recipe=named_document(member, Recipe, variant.recipe, field=f"variants.{index}.recipe"),
            sut=named_host(member, variant.sut, field=f"variants.{index}.sut"),
            driver=named_host(member, variant.driver, field=f"variants.{index}.driver"),
            parameters=variant.parameters,
            is_baseline=variant.is_baseline,
        )
        for index, variant in enumerate(payload.variants)
    ]
    experiment = launch.create_experiment(
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
    )
    return Status(201, _detail(member, experiment))


@router.get("/{int:experiment_id}", response=ExperimentOut)
def get_experiment(request: HttpRequest, experiment_id: int) -> ExperimentOut:
    """One experiment with its variants and runs."""
    member = member_of(request)
    return _detail(member, find_experiment(member, experiment_id))


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
def cancel_experiment(request: HttpRequest, experiment_id: int) -> Status[ExperimentOut]:
    """Cancel every run that is not finished; running ones restore their hosts first."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    launch.cancel_experiment(member, experiment)
    return Status(202, _detail(member, experiment))


@router.get("/{int:experiment_id}/verdict", response=VerdictOut)
async def experiment_verdict(
    request: HttpRequest, experiment_id: int, wait: int = Query(0, ge=0, le=MAX_WAIT_S, description="Seconds")
) -> VerdictOut:
    """pass, fail, inconclusive or error; with `wait`, once all runs are finished or that time is over."""
    member = member_of(request)

    def look() -> VerdictOut:
        experiment = find_experiment(member, experiment_id)
        url = absolute(request, experiment_url(member.team.slug, experiment.pk))
        return VerdictOut.of(experiment_gate(experiment), title=experiment.name, url=url)

    return await waited_for(look, wait)


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
    variants = experiment.variants.select_related("application", "recipe", "sut", "driver")
    runs = experiment_runs(experiment)
    return ExperimentOut(
        **ExperimentRow.of(experiment, team).model_dump(),
        expected_end_at=expected_end(member.team, runs),
        variants=[
            VariantOut(
                name=variant.name,
                is_baseline=variant.is_baseline,
                application=Named(name=variant.application.name, version=variant.application.version),
                recipe=Named(name=variant.recipe.name, version=variant.recipe.version),
                parameters=variant.parameters,
                sut=variant.sut.name,
                driver=variant.driver.name,
            )
            for variant in variants
        ],
        runs=[RunRow.of(run, team) for run in runs],
    )
