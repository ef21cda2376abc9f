"""Searches for the largest rate that a server sustains under a latency objective."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.analysis.search import DEFAULT_WIDTH_RATIO
from experiments.api.auth import LAUNCH, READ, member_of
from experiments.api.finding import find_search, named_document, named_host, named_hosts
from experiments.api.idempotency import idempotent
from experiments.api.shapes import (
    MAX_ID,
    Body,
    DriverNames,
    Labels,
    Named,
    Parameters,
    Priority,
    Reference,
    run_url,
    search_url,
)
from experiments.launch import Choice
from experiments.models import Application, CapacitySearch, Member, Recipe, Workload
from experiments.queue.priorities import PRIORITIES
from experiments.searches import live as searches
from experiments.searches import reading as search_reading

router = Router(auth=READ, tags=["searches"])


class TrialOut(BaseModel):
    position: int
    rate_rps: float
    phase: str = Field(description="bracket, bisect, vote or verify")
    result: str = Field(description="pass, fail or invalid; empty while it runs")
    reason: str
    run: int
    run_url: str
    throughput_rps: float | None
    latency_ms: float | None = Field(description="The objective's figure; null where saturation makes it meaningless")


class SearchRow(BaseModel):
    id: int
    url: str
    name: str
    state: str
    application: Named
    recipe: Named
    parameters: Parameters
    workload: Named
    sut: str
    drivers: list[str]
    objective_metric: str
    objective_ms: float
    width_ratio: float
    low_rps: float | None = Field(description="Sustained; null until the search is over")
    high_rps: float | None = Field(description="Not sustained; the limit lies between the two")
    sentence: str
    labels: dict[str, str]
    created_by: str | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, search: CapacitySearch, team: str) -> SearchRow:
        return cls(
            id=search.pk,
            url=search_url(team, search.pk),
            name=search.name,
            state=search.state,
            application=Named(name=search.application.name, version=search.application.version),
            recipe=Named(name=search.recipe.name, version=search.recipe.version),
            parameters=search.parameters,
            workload=Named(name=search.workload.name, version=search.workload.version),
            sut=search.sut.name,
            drivers=search.drivers.names,
            objective_metric=search.objective_metric,
            objective_ms=search.objective_ms,
            width_ratio=search.width_ratio,
            low_rps=search.low_rps,
            high_rps=search.high_rps,
            sentence=search.sentence,
            labels=search.labels,
            created_by=search.created_by.get_username() if search.created_by else None,
            created_at=search.created_at,
            finished_at=search.finished_at,
        )


class SearchOut(SearchRow):
    cost_s: float = Field(description="What its trials have taken so far")
    trials: list[TrialOut]


class SearchPage(BaseModel):
    items: list[SearchRow]
    next_cursor: str = Field(description="Empty at the end")


class SearchIn(Body):
    name: str = Field(min_length=1, max_length=120)
    application: Reference
    recipe: Reference
    workload: Reference = Field(description="Its load tool must be able to offer a rate; each trial sets its own")
    sut: str = Field(min_length=1, max_length=120)
    drivers: DriverNames
    parameters: Parameters = {}
    objective_metric: str = Field("latency_p99_ms", max_length=60, description=", ".join(searches.OBJECTIVES))
    objective_ms: float = Field(gt=0, lt=3_600_000)
    low_rps: float = Field(gt=0, le=searches.LARGEST_RPS, description="The first rate; halved until one passes")
    high_rps: float = Field(gt=0, le=searches.LARGEST_RPS, description="The second; doubled until one fails")
    width_ratio: float = Field(DEFAULT_WIDTH_RATIO, ge=0.001, le=0.5, description="(high - low) / high at the end")
    labels: Labels = {}
    priority: Priority = "normal"


@router.get("", response=SearchPage)
def list_searches(
    request: HttpRequest,
    state: Literal["", "running", "finished", "stopped", "cancelled"] = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> SearchPage:
    """Searches, the newest first."""
    member = member_of(request)
    found = search_reading.with_names(CapacitySearch.objects.for_team(member.team))
    rows, before = (found.filter(state=state) if state else found).newest_page(cursor or None, limit)
    return SearchPage(
        items=[SearchRow.of(row, member.team.slug) for row in rows],
        next_cursor=str(before or ""),
    )


@router.post("", response={202: SearchOut}, auth=LAUNCH)
@idempotent
def start_search(request: HttpRequest, payload: SearchIn) -> Status[SearchOut]:
    """Start a search: its first trial is queued now, each further one when the one before has ended."""
    member = member_of(request)
    choice = Choice(
        application=named_document(member, Application, payload.application, field="application"),
        recipe=named_document(member, Recipe, payload.recipe, field="recipe"),
        workload=named_document(member, Workload, payload.workload, field="workload"),
        sut=named_host(member, payload.sut, field="sut"),
        drivers=named_hosts(member, payload.drivers, field="drivers"),
        parameters=payload.parameters,
    )
    search = searches.start_search(
        member,
        choice,
        name=payload.name,
        objective_metric=payload.objective_metric,
        objective_ms=payload.objective_ms,
        low_rps=payload.low_rps,
        high_rps=payload.high_rps,
        width_ratio=payload.width_ratio,
        labels=payload.labels,
        priority=PRIORITIES[payload.priority],
    )
    return Status(202, _detail(member, search))


@router.get("/{int:search_id}", response=SearchOut)
def get_search(request: HttpRequest, search_id: int) -> SearchOut:
    """One search with its trials in order."""
    member = member_of(request)
    return _detail(member, find_search(member, search_id))


@router.post("/{int:search_id}/cancel", response={202: SearchOut}, auth=LAUNCH)
def cancel_search(request: HttpRequest, search_id: int) -> Status[SearchOut]:
    """End a search; the trial that is under way restores its hosts first."""
    member = member_of(request)
    search = find_search(member, search_id)
    searches.cancel_search(member, search)
    return Status(202, _detail(member, search))


def _detail(member: Member, search: CapacitySearch) -> SearchOut:
    team = member.team.slug
    return SearchOut(
        **SearchRow.of(search, team).model_dump(),
        cost_s=search_reading.cost_of(search).duration.total_seconds(),
        trials=[
            TrialOut(
                position=trial.position,
                rate_rps=trial.rate_rps,
                phase=trial.phase,
                result=trial.result,
                reason=trial.reason,
                run=trial.run.number,
                run_url=run_url(team, trial.run.number),
                throughput_rps=trial.run.throughput_rps,
                latency_ms=search_reading.latency_of(search, trial.run),
            )
            for trial in search_reading.trials_of(search)
        ],
    )
