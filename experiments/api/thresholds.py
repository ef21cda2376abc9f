"""The team's limits for the validity checks and for the search of histories."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.thresholds import Thresholds, limits
from experiments.api.plumbing.auth import ADMIN, READ, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body
from experiments.judging.alerts.limits import change_limits, limits_in
from experiments.judging.evidence.thresholds import change_thresholds, thresholds_of
from experiments.models import Series, Team
from experiments.registry.errors import NotFound

router = Router(auth=READ, tags=["thresholds"])


class ThresholdOut(BaseModel):
    """One limit; ratios are given as 0.02 for 2 %. `driver_cpu_invalid` is true or false."""

    name: str
    value: bool | float
    default: bool | float
    unit: str
    low: float
    high: float
    reason: str = Field(description="Why the default is what it is")
    source: str
    checks: list[str] = Field(description="The validity checks that use it")


class HistoryLimitOut(BaseModel):
    """A limit of the search for change points, as it counts for a series, a metric, or both."""

    name: str
    value: bool | float
    origin: str = Field(
        description="Where it was set: default, metric's default, team, metric, series or metric in series"
    )
    unit: str
    low: float
    high: float
    reason: str


class HistoryLimitsChange(Body):
    series: str = Field("", max_length=64, description="Fingerprint; empty = every series")
    metric: str = Field("", max_length=60, description="Empty = every metric")
    values: dict[str, bool | float | None] = Field(
        description="New values by name, null = as in the wider part; what is not named stays",
        examples=[{"history_margin_ratio": 0.05, "history_mutes_improvements": True}],
    )


class ThresholdsChange(Body):
    values: dict[str, bool | float | None] = Field(
        description="New values by name, null = back to the default; what is not named stays",
        examples=[{"error_budget_ratio": 0.001, "steal_warn_ratio": None}],
    )


@router.get("", response=list[ThresholdOut])
@paged
def list_thresholds(request: HttpRequest) -> list[ThresholdOut]:
    """Every limit of the validity checks: the team's value, the default and the reason for it."""
    return list(_shown(thresholds_of(member_of(request).team)))


@router.patch("", response=list[ThresholdOut], auth=ADMIN)
def set_thresholds(request: HttpRequest, payload: ThresholdsChange) -> list[ThresholdOut]:
    """Set limits for runs that end from now on. For admins; the audit trail names what changed."""
    return list(_shown(change_thresholds(member_of(request), payload.values)))


@router.get("/history", response=list[HistoryLimitOut])
@paged
def list_history_limits(
    request: HttpRequest, series: str = Query("", max_length=64), metric: str = Query("", max_length=60)
) -> list[HistoryLimitOut]:
    """The limits by which the histories of a series, a metric or both are searched, and where each was set."""
    team = member_of(request).team
    return _limits(team, _series(team, series), metric)


@router.patch("/history", response=list[HistoryLimitOut], auth=ADMIN)
def set_history_limits(request: HttpRequest, payload: HistoryLimitsChange) -> list[HistoryLimitOut]:
    """Set limits for a series, a metric, or a metric in a series; for all histories, PATCH /thresholds. For admins.

    They count from the next run on.
    """
    member = member_of(request)
    series = _series(member.team, payload.series)
    change_limits(member, payload.values, series=series, metric=payload.metric)
    return _limits(member.team, series, payload.metric)


def _series(team: Team, fingerprint: str) -> Series | None:
    found = Series.objects.for_team(team).filter(fingerprint=fingerprint.replace("\0", "")).first()
    if fingerprint and found is None:
        raise NotFound("There is no such series.", field="series")
    return found


def _limits(team: Team, series: Series | None, metric: str) -> list[HistoryLimitOut]:
    known = {limit.name: limit for limit in limits()}
    return [
        HistoryLimitOut(
            name=row.name,
            value=row.value,
            origin=row.origin,
            unit=known[row.name].unit,
            low=known[row.name].low,
            high=known[row.name].high,
            reason=known[row.name].reason,
        )
        for row in limits_in(team, series, metric).rows
    ]


def _shown(values: Thresholds) -> Iterator[ThresholdOut]:
    for limit in limits():
        yield ThresholdOut(
            name=limit.name,
            value=getattr(values, limit.name),
            default=limit.default,
            unit=limit.unit,
            low=limit.low,
            high=limit.high,
            reason=limit.reason,
            source=limit.source,
            checks=list(limit.checks),
        )
