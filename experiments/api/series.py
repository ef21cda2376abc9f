"""Histories: the series of a team, and one metric over time."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.auth import READ, member_of
from experiments.api.shapes import run_url
from experiments.history import MAX_POINTS, metric_history, series_of
from experiments.run_filter import parse_time

router = Router(auth=READ, tags=["series"])


class SeriesRow(BaseModel):
    """Runs with one fingerprint: same workload, tool, latency basis, SUT hardware and application."""

    fingerprint: str
    application: str
    workload: str
    tool: str
    latency_basis: str
    sut_profile: str | None
    last_run: int | None


class PointOut(BaseModel):
    number: int
    url: str
    at: datetime | None
    value: float
    recipe: str
    validity: str
    labels: dict[str, str]
    experiment: int | None


class HistoryOut(BaseModel):
    metric: str
    label: str
    unit: str
    direction: str
    points: list[PointOut] = Field(description="Oldest first; only runs that count")
    truncated: bool


@router.get("", response=list[SeriesRow])
def list_series(request: HttpRequest) -> list[SeriesRow]:
    """The series of the team, the one with the newest run first."""
    return [
        SeriesRow(
            fingerprint=series.fingerprint,
            application=series.application,
            workload=series.workload,
            tool=series.tool,
            latency_basis=series.latency_basis,
            sut_profile=series.sut_profile.digest if series.sut_profile else None,
            last_run=series.last_run.number if series.last_run else None,
        )
        for series in series_of(member_of(request).team)
    ]


@router.get("/{fingerprint}", response=HistoryOut)
def get_history(
    request: HttpRequest,
    fingerprint: str,
    metric: str = "throughput_rps",
    recipe: str = Query("", max_length=120),
    since: str = "",
    until: str = "",
    limit: int = Query(MAX_POINTS, ge=1, le=MAX_POINTS),
) -> HistoryOut:
    """One metric over the runs of a series; an unknown series has no points."""
    team = member_of(request).team
    history = metric_history(
        team,
        fingerprint,
        metric,
        recipe=recipe,
        since=parse_time(since, "since") if since else None,
        until=parse_time(until, "until") if until else None,
        limit=limit,
    )
    return HistoryOut(
        metric=history.metric.name,
        label=history.metric.label,
        unit=history.metric.unit,
        direction=history.metric.direction,
        points=[
            PointOut(
                number=point.number,
                url=run_url(team.slug, point.number),
                at=point.at,
                value=point.value,
                recipe=point.recipe,
                validity=point.validity,
                labels=dict(point.labels),
                experiment=point.experiment_id,
            )
            for point in history.points
        ],
        truncated=history.truncated,
    )
