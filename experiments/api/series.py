"""Histories: the series of a team, and one metric over time."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.choices import AlertState, MetricDirection, RunValidity, Time, Triage
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, run_url
from experiments.judging.alerts.triage import change_points, expect_level, expected_levels
from experiments.judging.comparing.history import MAX_POINTS, metric_history, series_of
from experiments.models import Alert, Team, Trend
from experiments.registry.errors import NotFound
from experiments.registry.replica import read_from_replica
from experiments.telling.run_list.conditions import parse_time

router = Router(auth=READ, tags=["series"])


class SeriesRow(BaseModel):
    """Runs with one fingerprint: same workload, tool, latency basis, SUT hardware and application."""

    fingerprint: str
    title: str = Field(description="Application, workload, tool and hardware, as lists for people show a series")
    application: str
    workload: str
    tool: str
    latency_basis: str
    sut_profile: str | None
    last_run: int | None


class PointOut(BaseModel):
    """One night: the repetitions of an experiment's variant, or the single runs of an hour on one boot."""

    number: int = Field(description="Its first run")
    url: str
    at: datetime | None
    value: float = Field(description="The mean of its runs")
    spread: float | None = Field(description="The standard deviation of its runs; null for one run")
    runs: list[int]
    recipe: str
    validity: RunValidity
    labels: dict[str, str]
    experiment: int | None


class ChangePointOut(BaseModel):
    """Where the level of one recipe jumped; GET /alerts/{alert} says more."""

    alert: int
    recipe: str
    variation: str
    run_before: int | None
    run_after: int | None
    at: datetime | None
    mean_before: float | None
    mean_after: float | None
    change_pct: float | None
    worse: bool
    state: AlertState
    triage: Triage

    @classmethod
    def of(cls, alert: Alert) -> ChangePointOut:
        return cls(
            alert=alert.pk,
            recipe=alert.trend.recipe,
            variation=alert.trend.variation,
            run_before=alert.run_before.number if alert.run_before else None,
            run_after=alert.run_after.number if alert.run_after else None,
            at=alert.changed_at,
            mean_before=alert.mean_before,
            mean_after=alert.mean_after,
            change_pct=None if alert.change_ratio is None else alert.change_ratio * 100,
            worse=alert.worse,
            state=alert.state,
            triage=alert.triage,
        )


class ExpectedLevel(BaseModel):
    """A level that a person called expected, of one recipe with one choice of parameters."""

    recipe: str
    variation: str
    value: float
    since_run: int | None


class LevelIn(Body):
    metric: str = Field(max_length=60)
    recipe: str = Field("", max_length=120)
    variation: str = Field("", max_length=200, description="As in a change point; empty = the recipe's defaults")


class HistoryOut(BaseModel):
    metric: str
    label: str
    unit: str
    direction: MetricDirection
    points: list[PointOut] = Field(description="Oldest first; of runs that count")
    truncated: bool
    change_points: list[ChangePointOut] = Field(description="Oldest first, without those that a person called none")
    expected_levels: list[ExpectedLevel]


@router.get("", response=list[SeriesRow])
@paged
def list_series(request: HttpRequest) -> list[SeriesRow]:
    """The series of the team, the one with the newest run first."""
    return [
        SeriesRow(
            fingerprint=series.fingerprint,
            title=" · ".join(filter(None, [str(series), str(series.sut_profile or "")])),
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
    since: Time = None,
    until: Time = None,
    limit: int = Query(MAX_POINTS, ge=1, le=MAX_POINTS),
) -> HistoryOut:
    """One metric over the nights of a series; an unknown series has no points. `limit` counts runs."""
    team = member_of(request).team
    first, end = parse_time(since, "since") if since else None, parse_time(until, "until") if until else None
    history = read_from_replica(
        lambda: metric_history(team, fingerprint, metric, recipe=recipe, since=first, until=end, limit=limit)
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
                spread=point.spread,
                runs=list(point.runs),
                recipe=point.recipe,
                validity=point.validity,
                labels=dict(point.labels),
                experiment=point.experiment_id,
            )
            for point in history.points
        ],
        truncated=history.truncated,
        change_points=[ChangePointOut.of(alert) for alert in change_points(team, [fingerprint], metric, recipe)],
        expected_levels=_levels(team, fingerprint, metric, recipe),
    )


@router.post("/{fingerprint}/expected-level", response=list[ExpectedLevel], auth=WRITE)
def expect_present_level(request: HttpRequest, fingerprint: str, payload: LevelIn) -> list[ExpectedLevel]:
    """Say that the present level is as it should be; the change that led to it becomes expected."""
    member = member_of(request)
    trend = Trend.objects.filter(
        series__team=member.team,
        series__fingerprint=fingerprint,
        metric=payload.metric,
        recipe=payload.recipe,
        variation=payload.variation,
    ).first()
    if trend is None:
        raise NotFound("There is no such history.")
    expect_level(member, trend)
    return _levels(member.team, fingerprint, payload.metric, payload.recipe)


def _levels(team: Team, fingerprint: str, metric: str, recipe: str) -> list[ExpectedLevel]:
    return [
        ExpectedLevel(recipe=one.recipe, variation=one.variation, value=one.value, since_run=one.since_run)
        for one in expected_levels(team, [fingerprint], metric, recipe)
    ]
