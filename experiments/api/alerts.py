"""Alerts: change points of histories and data that stopped coming, and what people say about them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.choices import AlertKind, AlertState
from experiments.api.compare import ConfigurationOut, ConfounderOut
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.paging import tell_pages_of
from experiments.api.plumbing.sparse import FIELDS, sparse
from experiments.api.shapes import MAX_ID, Body, Flag, alert_url
from experiments.judging.alerts import triage as alerts
from experiments.judging.alerts.causes import causes_text
from experiments.judging.alerts.wording import sentence
from experiments.models import Alert, Member, Role
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.teams.access import require

router = Router(auth=READ, tags=["alerts"])

Triage = Literal["untriaged", "acknowledged", "expected", "infra", "invalid", "fixed"]


class AlertRow(BaseModel):
    """A change point, or data that stopped coming (`kind` missing: only the last run is known)."""

    id: int
    url: str
    kind: AlertKind
    state: AlertState = Field(description="suspected: fewer than 4 runs behind it; confirmed")
    stands: bool = Field(description="The data still show it; kept otherwise because a person said something about it")
    triage: Triage
    sentence: str
    worse: bool = Field(description="By the metric's direction")
    metric: str
    label: str
    unit: str
    series: str = Field(description="Fingerprint; GET /series/{fingerprint}")
    application: str
    workload: str
    recipe: str
    variation: str = Field(description="Parameters that are not the recipe's defaults")
    run_before: int | None
    run_after: int | None
    at: datetime | None = Field(description="When the first run of the new level ended")
    mean_before: float | None
    mean_after: float | None
    change_pct: float | None
    n_before: int
    n_after: int
    p: float | None
    what_changed: str = Field(description="In the configuration between both runs, in short; empty for missing data")
    found_at: datetime
    owner: str | None
    note: str
    triaged_by: str | None
    triaged_at: datetime | None

    @classmethod
    def of(cls, alert: Alert, team: str) -> AlertRow:
        return cls(**_fields(alert, team))


class AlertOut(AlertRow):
    """An alert with what differs between the runs on both sides of it."""

    configuration: ConfigurationOut | None = Field(description="null when one of the runs is gone")
    hardware: ConfigurationOut | None
    confounders: list[ConfounderOut]
    same_point: list[int] = Field(description="Alerts of other metrics of the same runs at this point")


class AlertPage(BaseModel):
    items: list[AlertRow]
    next_cursor: str = Field(description="Empty at the end")


class AlertChange(Body):
    """What is left out stays."""

    triage: Triage | None = Field(
        None, description="expected also sets the expected level when this is the last change"
    )
    owner: str | None = Field(None, max_length=150, description='User name of a member; "" = nobody')
    note: str | None = Field(None, max_length=alerts.MAX_NOTE)
    same_point: Flag = Field(False, description="Also of other metrics that changed there and are untriaged")


@router.get("", response=AlertPage)
def list_alerts(
    request: HttpRequest,
    triage: str = Query(alerts.OPEN, description="A triage state; open = untriaged and still there; all"),
    state: str = "",
    kind: str = "",
    metric: str = "",
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(100, ge=1, le=500),
    fields: str = FIELDS,
) -> Any:
    """The team's alerts, the newest first; open ones when nothing else is asked for."""
    team = member_of(request).team
    wanted = alerts.AlertFilter("" if triage == "all" else triage, state, metric, kind)
    rows, before = wanted.alerts(team).newest_page(cursor or None, limit)
    page = AlertPage(
        items=[AlertRow.of(row, team.slug) for row in rows],
        next_cursor=str(before or ""),
    )
    tell_pages_of(request, page)
    return sparse(page, AlertRow, fields)


@router.get("/{int:alert_id}", response=AlertOut)
def get_alert(request: HttpRequest, alert_id: int) -> AlertOut:
    """One alert, with the configuration that differs between its two runs."""
    return _shown(member_of(request), alert_id)


@router.patch("/{int:alert_id}", response=AlertOut, auth=WRITE)
def change_alert(request: HttpRequest, alert_id: int, payload: AlertChange) -> AlertOut:
    """Say what an alert is, whose it is, and why. Runs that come later do not change what was said."""
    member = member_of(request)
    alert = alerts.find_alert(member.team, alert_id)
    require(member, Role.EDITOR)
    say = alerts.triage_point if payload.same_point else alerts.triage
    say(
        member,
        alert,
        state=payload.triage,
        owner=_member(member, payload.owner) if payload.owner else None,
        unassign=payload.owner == "",
        note=payload.note,
    )
    return _shown(member, alert_id)


def _shown(member: Member, alert_id: int) -> AlertOut:
    alert = alerts.find_alert(member.team, alert_id)
    found = alerts.differences(alert)
    return AlertOut(
        **_fields(alert, member.team.slug),
        configuration=ConfigurationOut.of(found.configuration) if found else None,
        hardware=ConfigurationOut.of(found.hardware) if found else None,
        confounders=[ConfounderOut(what=one.what, values=list(one.values)) for one in found.confounders]
        if found
        else [],
        same_point=[other.pk for other in alerts.same_point(alert)],
    )


def _member(member: Member, username: str) -> Member:
    key = f"user__{get_user_model().USERNAME_FIELD}"
    found = Member.objects.filter(team=member.team, **{key: username}).first()
    if found is None:
        raise RequestError(f"There is no member {username!r}.", field="owner")
    return found


def _fields(alert: Alert, team: str) -> dict[str, Any]:
    spec, series = metric_named(alert.team_id, alert.trend.metric), alert.trend.series
    return {
        "id": alert.pk,
        "url": alert_url(team, alert.pk),
        "kind": alert.kind,
        "state": alert.state,
        "stands": alert.stands,
        "triage": alert.triage,
        "sentence": sentence(alert),
        "worse": alert.worse,
        "metric": spec.name,
        "label": spec.label,
        "unit": spec.unit,
        "series": series.fingerprint,
        "application": series.application,
        "workload": series.workload,
        "recipe": alert.trend.recipe,
        "variation": alert.trend.variation,
        "run_before": alert.run_before.number if alert.run_before else None,
        "run_after": alert.run_after.number if alert.run_after else None,
        "at": alert.changed_at,
        "mean_before": alert.mean_before,
        "mean_after": alert.mean_after,
        "change_pct": None if alert.change_ratio is None else alert.change_ratio * 100,
        "n_before": alert.n_before,
        "n_after": alert.n_after,
        "p": alert.p,
        "what_changed": causes_text(alert.causes) if alert.kind == Alert.Kind.CHANGE else "",
        "found_at": alert.found_at,
        "owner": alert.owner.get_username() if alert.owner else None,
        "note": alert.note,
        "triaged_by": alert.triaged_by.get_username() if alert.triaged_by else None,
        "triaged_at": alert.triaged_at,
    }
