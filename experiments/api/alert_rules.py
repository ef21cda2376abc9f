"""A team's own rules for alerts, and what broke them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag, Labels
from experiments.judging.alerts.own_rules import condition
from experiments.judging.alerts.saving_rules import (
    WantedRule,
    change_rule,
    create_rule,
    delete_rule,
    find_rule,
    rules_of,
    wanted_of,
)
from experiments.models import AlertRule, BrokenRule, Team

router = Router(auth=READ, tags=["alerts"])

NEWEST = 50
Kind = Literal["figure", "verdict", "run_failed"]
Side = Literal["", "above", "below"]


class BrokenOut(BaseModel):
    at: datetime
    sentence: str
    run: int | None = Field(description="Its number")
    experiment: int | None


class AlertRuleRow(BaseModel):
    id: int
    name: str
    kind: Kind = Field(description="figure: of a run beyond a limit; verdict: a candidate lost; run_failed")
    metric: str
    side: Side
    limit: float | None = Field(description="In the metric's unit")
    workload: str = Field(description="Its name; empty: every workload")
    labels: dict[str, str]
    is_active: bool
    in_words: str
    last_broken_at: datetime | None

    @classmethod
    def of(cls, rule: AlertRule) -> AlertRuleRow:
        return cls(**_fields(rule))


class AlertRuleOut(AlertRuleRow):
    broken: list[BrokenOut] = Field(description="The newest 50")


class AlertRuleIn(Body):
    name: str = Field(min_length=1, max_length=120)
    kind: Kind
    metric: str = Field("", max_length=60, description="Of kind figure: a name of `GET /metrics`")
    side: Side = ""
    limit: float | None = Field(None, description="In the metric's unit: ms of latencies")
    workload: str = Field("", max_length=120, description="Its name; empty: every workload")
    labels: Labels = Field({}, description="Only runs that have all of them")
    is_active: Flag = True


class AlertRuleChange(Body):
    """What is left out stays."""

    name: str | None = Field(None, min_length=1, max_length=120)
    kind: Kind | None = None
    metric: str | None = Field(None, max_length=60)
    side: Side | None = None
    limit: float | None = None
    workload: str | None = Field(None, max_length=120)
    labels: Labels | None = None
    is_active: Flag | None = None


class RuleDeleted(BaseModel):
    deleted: str


@router.get("", response=list[AlertRuleRow])
@paged
def list_alert_rules(request: HttpRequest) -> list[AlertRuleRow]:
    """The team's rules by name."""
    return [AlertRuleRow.of(rule) for rule in rules_of(member_of(request).team)]


@router.post("", response={201: AlertRuleOut}, auth=WRITE)
@idempotent
def create_alert_rule(request: HttpRequest, payload: AlertRuleIn) -> Status[AlertRuleOut]:
    """Be told when a figure passes a limit, a candidate loses or a run fails, from now on."""
    member = member_of(request)
    return Status(201, _detail(find_rule(member.team, create_rule(member, WantedRule(**payload.model_dump())).pk)))


@router.get("/{int:rule_id}", response=AlertRuleOut)
def get_alert_rule(request: HttpRequest, rule_id: int) -> AlertRuleOut:
    """One rule with what broke it last."""
    return _detail(find_rule(member_of(request).team, rule_id))


@router.patch("/{int:rule_id}", response=AlertRuleOut, auth=WRITE)
def change_alert_rule(request: HttpRequest, rule_id: int, payload: AlertRuleChange) -> AlertRuleOut:
    """Other values; what it found stays."""
    member = member_of(request)
    with transaction.atomic():  # what is left out stays as it is now, not as it was when it was read
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=member.team_id)  # the lock of `saving_rules`
        rule = find_rule(member.team, rule_id)
        change_rule(member, rule, WantedRule(**asdict(wanted_of(rule)) | payload.model_dump(exclude_none=True)))
    return _detail(find_rule(member.team, rule_id))


@router.delete("/{int:rule_id}", response=RuleDeleted, auth=WRITE)
def delete_alert_rule(request: HttpRequest, rule_id: int) -> RuleDeleted:
    """Delete it with what it found."""
    member = member_of(request)
    rule = find_rule(member.team, rule_id)
    delete_rule(member, rule)
    return RuleDeleted(deleted=rule.name)


def _fields(rule: AlertRule) -> dict[str, Any]:
    return {
        "id": rule.pk,
        **asdict(wanted_of(rule)),
        "in_words": condition(rule),
        "last_broken_at": rule.last_at,  # type: ignore[attr-defined]  # annotated by rules_of
    }


def _detail(rule: AlertRule) -> AlertRuleOut:
    newest = BrokenRule.objects.filter(rule=rule).select_related("run").order_by("-pk")[:NEWEST]
    broken = [
        BrokenOut(
            at=one.at,
            sentence=one.sentence,
            run=one.run.number if one.run else None,
            experiment=one.experiment_id,
        )
        for one in newest
    ]
    return AlertRuleOut(**_fields(rule), broken=broken)
