"""Making, changing and deleting a team's own rules for alerts. Editors may."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Max, QuerySet

from experiments.judging.alerts.own_rules import changed_fields
from experiments.models import AlertRule, Member, Role, Team
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.naming import check_title
from experiments.registry.notes.labels import check_labels
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MOST_RULES = 100


@dataclass(frozen=True)
class WantedRule:
    """A rule as it is asked for; `limit` is in the metric's unit."""

    name: str
    kind: str
    metric: str = ""
    side: str = ""
    limit: float | None = None
    workload: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_active: bool = True


def rules_of(team: Team) -> QuerySet[AlertRule]:
    """The team's rules by name, each with when it was last broken (`last_at`)."""
    found: QuerySet[AlertRule] = AlertRule.objects.for_team(team).select_related("created_by")
    return found.annotate(last_at=Max("broken__at")).order_by("name")


def find_rule(team: Team, rule_id: int) -> AlertRule:
    """NotFound when the team has none of this id."""
    found = rules_of(team).filter(pk=rule_id).first()
    if found is None:
        raise NotFound(f"There is no alert rule {rule_id}.")
    return found


def create_rule(member: Member, wanted: WantedRule) -> AlertRule:
    """Store a rule; it looks at what ends from now on. RequestError names the field that makes no sense."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=member.team_id)
        if AlertRule.objects.for_team(member.team).count() >= MOST_RULES:
            raise Conflict(f"A team has at most {MOST_RULES} alert rules; delete one first.")
        rule = AlertRule(team=member.team, created_by_id=member.user_id)
        _fill(rule, wanted)
        rule.save()
        audit.record(member, "alert_rule.create", f"alert rule {rule.name}", after=dict(changed_fields(rule)))
    return rule


def change_rule(member: Member, rule: AlertRule, wanted: WantedRule) -> None:
    """Store what it is to be from now on; what it found stays."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=member.team_id)
        before = dict(changed_fields(rule))
        _fill(rule, wanted)
        rule.save()
        after = dict(changed_fields(rule))
        audit.record(member, "alert_rule.change", f"alert rule {rule.name}", before=before, after=after)


def delete_rule(member: Member, rule: AlertRule) -> None:
    """Delete it with what it found."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        audit.record(member, "alert_rule.delete", f"alert rule {rule.name}", before=dict(changed_fields(rule)))
        AlertRule.objects.filter(pk=rule.pk).delete()


def wanted_of(rule: AlertRule) -> WantedRule:
    """A rule as it would be asked for."""
    names = ("name", "kind", "metric", "side", "limit", "workload", "labels", "is_active")
    return WantedRule(**{name: getattr(rule, name) for name in names})


def _fill(rule: AlertRule, wanted: WantedRule) -> None:
    check_title(wanted.name, "A rule")
    if AlertRule.objects.filter(team_id=rule.team_id, name=wanted.name).exclude(pk=rule.pk).exists():
        raise Conflict(f"There is a rule {wanted.name!r} already.", field="name")
    if wanted.kind not in AlertRule.Kind.values:
        known = ", ".join(AlertRule.Kind.values)
        raise RequestError(f"There is no kind of rule {wanted.kind!r}; known: {known}.", field="kind")
    of_figures = wanted.kind == AlertRule.Kind.FIGURE
    if of_figures:
        metric_named(rule.team_id, wanted.metric, field="metric")
        if wanted.side not in AlertRule.Side.values:
            raise RequestError("Say whether the figure is to be above or below the limit.", field="side")
        if wanted.limit is None or not math.isfinite(wanted.limit):
            raise RequestError("Give the limit, a number in the metric's unit.", field="limit")
    if len(wanted.workload) > 120 or "\0" in wanted.workload:
        raise RequestError("The name of a workload has at most 120 characters.", field="workload")
    rule.name, rule.kind = wanted.name, wanted.kind
    rule.metric = wanted.metric if of_figures else ""
    rule.side = wanted.side if of_figures else ""
    rule.limit = wanted.limit if of_figures else None
    rule.workload, rule.labels = wanted.workload.strip(), check_labels(wanted.labels)
    rule.is_active = wanted.is_active
