"""Searches for the largest rate that a server sustains under a latency objective."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.analysis.search import DEFAULT_WIDTH_RATIO
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.setups import InquiryRow, SetupIn, inquiry_fields
from experiments.api.shapes import MAX_ID, run_url, search_url
from experiments.asking.searches import live as searches
from experiments.asking.searches import reading as search_reading
from experiments.models import CapacitySearch, Member
from experiments.running.queue.priorities import PRIORITIES

router = Router(auth=READ, tags=["searches"])


class TrialOut(BaseModel):
    position: int
    rate_rps: float
    phase: str = Field(description="bracket, bisect, vote or verify (docs/search.md)")
    result: str = Field(description="pass, fail or invalid; empty while it runs")
    reason: str
    run: int
    run_url: str
    throughput_rps: float | None
    latency_ms: float | None = Field(description="The objective's figure; null where saturation makes it meaningless")


class SearchRow(InquiryRow):
    objective_metric: str
    objective_ms: float
    width_ratio: float
    low_rps: float | None = Field(description="Sustained; null until the search is over")
    high_rps: float | None = Field(description="Not sustained; the limit lies between the two")
    coverage_ratio: float | None = Field(
        description="At least this share of such intervals hold the limit, when the width is at least twice the noise "
        "between equal runs; null until the search is over, and where it is not known"
    )

    @classmethod
    def of(cls, search: CapacitySearch, team: str) -> SearchRow:
        return cls(
            url=search_url(team, search.pk),
            objective_metric=search.objective_metric,
            objective_ms=search.objective_ms,
            width_ratio=search.width_ratio,
            low_rps=search.low_rps,
            high_rps=search.high_rps,
            coverage_ratio=search.coverage_ratio,
            **inquiry_fields(search),
        )


class SearchOut(SearchRow):
    cost_s: float = Field(description="What its trials have taken so far")
    trials: list[TrialOut]


class SearchPage(BaseModel):
    items: list[SearchRow]
    next_cursor: str = Field(description="Empty at the end")


class SearchIn(SetupIn):
    """The workload's load tool must be able to offer a rate; each trial sets its own."""

    name: str = Field(min_length=1, max_length=120)
    objective_metric: str = Field("latency_p99_ms", max_length=60, description=", ".join(searches.OBJECTIVES))
    objective_ms: float = Field(gt=0, lt=3_600_000)
    low_rps: float = Field(
        gt=0, le=searches.LARGEST_RPS, description="The first rate; smaller ones follow until one passes"
    )
    high_rps: float = Field(gt=0, le=searches.LARGEST_RPS, description="The second; larger ones follow until one fails")
    width_ratio: float = Field(DEFAULT_WIDTH_RATIO, ge=0.001, le=0.5, description="(high - low) / high at the end")


@router.get("", response=SearchPage)
def list_searches(
    request: HttpRequest,
    state: Literal["", "running", "finished", "stopped", "cancelled"] = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> SearchPage:
    """Searches, the newest first."""
    member = member_of(request)
    rows, before = searches.SEARCHES.newest(member.team, state=state, before=cursor or None, limit=limit)
    return SearchPage(
        items=[SearchRow.of(row, member.team.slug) for row in rows],
        next_cursor=str(before or ""),
    )


@router.post("", response={202: SearchOut}, auth=LAUNCH)
@idempotent
def start_search(request: HttpRequest, payload: SearchIn) -> Status[SearchOut]:
    """Start a search: its first trial is queued now, each further one when the one before has ended."""
    member = member_of(request)
    search = searches.start_search(
        member,
        payload.choice(member),
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
    return _detail(member, searches.SEARCHES.find(member.team, search_id))


@router.post("/{int:search_id}/cancel", response={202: SearchOut}, auth=LAUNCH)
@idempotent
def cancel_search(request: HttpRequest, search_id: int) -> Status[SearchOut]:
    """End a search; the trial that is under way restores its hosts first."""
    member = member_of(request)
    search = searches.SEARCHES.find(member.team, search_id)
    searches.SEARCHES.cancel(member, search)
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
