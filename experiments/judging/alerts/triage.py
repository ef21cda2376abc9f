"""Alerts as people handle them: find, triage, say which level is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from experiments.judging.alerts.matching import MAY_MOVE
from experiments.judging.comparing.comparison import Comparison, comparable_runs, compare
from experiments.models import Alert, Member, Role, Run, Team, Trend
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.runs.nights import nights_of
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_NOTE = 4000
OPEN = "open"
"""The filter's word for what nobody has looked at and the data still show."""


@dataclass(frozen=True)
class AlertFilter:
    """What to list; "" = any. `triage` is a triage state or `open`."""

    triage: str = OPEN
    state: str = ""
    metric: str = ""
    kind: str = ""

    def alerts(self, team: Team) -> TeamOwnedQuerySet:
        """The team's alerts that fit, newest first. RequestError names a word that does not exist."""
        known = {
            "triage": {OPEN, *Alert.Triage.values},
            "state": set(Alert.State.values),
            "kind": set(Alert.Kind.values),
        }
        alerts = alerts_of(team)
        for name, values in known.items():
            given = getattr(self, name)
            if given and given not in values:
                raise RequestError(f"{name} is one of {', '.join(sorted(values))}.", field=name)
        if self.triage == OPEN:
            alerts = alerts.filter(triage=Alert.Triage.UNTRIAGED, stands=True, muted=False)
        elif self.triage:
            alerts = alerts.filter(triage=self.triage)
        if self.state:
            alerts = alerts.filter(state=self.state)
        if self.metric:
            metric_named(team.pk, self.metric)
            alerts = alerts.filter(trend__metric=self.metric)
        if self.kind:
            alerts = alerts.filter(kind=self.kind)
        return alerts


def alerts_of(team: Team) -> TeamOwnedQuerySet:
    """The team's alerts with all that a list of them shows, newest first."""
    return (
        Alert.objects.for_team(team)
        .select_related("trend__series", "run_before", "run_after", "owner", "triaged_by")
        .defer(
            *(f"trend__{name}" for name in ("packed", "windows", "occasions_s")),
            *(f"{run}__{name}" for run in ("run_before", "run_after") for name in ("spec", "findings")),
        )
        .order_by("-pk")
    )


def find_alert(team: Team, alert_id: int) -> Alert:
    found: Alert | None = alerts_of(team).filter(pk=alert_id).first()
    if found is None:
        raise NotFound(f"There is no alert {alert_id}.")
    return found


def open_count(team: Team) -> int:
    """How many alerts nobody has looked at."""
    return Alert.objects.for_team(team).filter(triage=Alert.Triage.UNTRIAGED, stands=True, muted=False).count()


def change_points(team: Team, fingerprints: Sequence[str], metric: str, recipe: str = "") -> list[Alert]:
    """The change points of one metric that its chart marks, oldest first; what a person called none is left out."""
    found = alerts_of(team).filter(trend__in=_trends(team, fingerprints, metric, recipe), kind=Alert.Kind.CHANGE)
    return list(found.filter(stands=True).exclude(triage=Alert.Triage.INVALID).order_by("after_at_s"))


@dataclass(frozen=True)
class ExpectedLevel:
    """A level that a person called expected, of one line of a series."""

    trend_id: int
    recipe: str
    variation: str
    value: float
    since_run: int | None


def expected_levels(team: Team, fingerprints: Sequence[str], metric: str, recipe: str = "") -> list[ExpectedLevel]:
    """The expected levels of one metric, by recipe."""
    found = _trends(team, fingerprints, metric, recipe).filter(expected_value__isnull=False)
    rows = found.order_by("recipe", "variation", "pk")
    fields = ("pk", "recipe", "variation", "expected_value", "expected_since")
    return [ExpectedLevel(*row) for row in rows.values_list(*fields)]


def _trends(team: Team, fingerprints: Sequence[str], metric: str, recipe: str) -> QuerySet[Trend]:
    metric_named(team.pk, metric)
    if "\0" in recipe:
        raise RequestError("No recipe has a NUL character in its name.", field="recipe")
    found = Trend.objects.filter(series__team=team, series__fingerprint__in=fingerprints, metric=metric)
    return found.filter(recipe=recipe) if recipe else found


def triage(
    member: Member,
    alert: Alert,
    *,
    state: str | None = None,
    owner: Member | None = None,
    unassign: bool = False,
    note: str | None = None,
) -> None:
    """Say what an alert is, whose it is and why; what is left out stays. A person's word that no later data change."""
    require(member, Role.EDITOR)
    if state is not None and state not in Alert.Triage.values:
        raise RequestError(f"The state is one of {', '.join(Alert.Triage.values)}.", field="triage")
    if note is not None and len(note) > MAX_NOTE:
        raise RequestError(f"A note has at most {MAX_NOTE} characters.", field="note")
    if note is not None and "\0" in note:
        raise RequestError("A note cannot hold a NUL character.", field="note")
    if owner is not None and owner.team_id != alert.team_id:
        raise RequestError("The owner is a member of the team.", field="owner")
    with transaction.atomic():
        locked = Alert.objects.select_for_update(of=("self",)).select_related("owner", "run_after").get(pk=alert.pk)
        before = _said(locked)
        if state is not None:
            locked.triage = state
        if note is not None:
            locked.note = note
        if owner is not None or unassign:
            locked.owner_id = owner.user_id if owner is not None else None
        locked.triaged_at, locked.triaged_by_id = timezone.now(), member.user_id
        locked.save(update_fields=["triage", "note", "owner", "triaged_at", "triaged_by"])
        after = _said(Alert.objects.select_related("owner").get(pk=alert.pk))
        if after != before:
            audit.record(member, "alert.triage", f"alert {alert.pk}", before=before, after=after)
        if state == Alert.Triage.EXPECTED and locked.pk == getattr(_last_change(locked.trend_id), "pk", None):
            trend = Trend.objects.select_for_update(of=("self",)).get(pk=locked.trend_id)
            _expect(member, trend, locked.mean_after, locked.run_after.number if locked.run_after else None)
    alert.refresh_from_db()


def same_point(alert: Alert) -> list[Alert]:
    """Change points of other metrics of the same runs, at most `MAY_MOVE` points away: most likely one cause."""
    if alert.kind != Alert.Kind.CHANGE or alert.after_at_s is None:
        return []
    at_s = nights_of(alert.trend.points).at_s
    first = max(int(np.searchsorted(at_s, alert.before_at_s)) - MAY_MOVE, 0)
    last = min(int(np.searchsorted(at_s, alert.after_at_s)) + MAY_MOVE, len(at_s) - 1)
    found = alerts_of(alert.team).filter(
        trend__series=alert.trend.series_id,
        trend__recipe=alert.trend.recipe,
        trend__variation=alert.trend.variation,
        kind=Alert.Kind.CHANGE,
        stands=True,
        before_at_s__gte=float(at_s[first]),
        after_at_s__lte=float(at_s[last]),
    )
    return list(found.exclude(trend=alert.trend_id))


def triage_point(member: Member, alert: Alert, **said: Any) -> int:
    """Say the same of an alert and of what is untriaged at the same point; returns of how many others."""
    others = [other for other in same_point(alert) if other.triage == Alert.Triage.UNTRIAGED]
    with transaction.atomic():
        for one in (alert, *others):
            triage(member, one, **said)
    return len(others)


def expect_level(member: Member, trend: Trend) -> None:
    """Say that the level of a trend is as it should be: the change that led to it is expected, charts show a line."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        locked = Trend.objects.select_for_update(of=("self",)).get(pk=trend.pk)
        if not locked.length:
            raise Conflict("This trend has no run that counts, so there is no level to expect.")
        last = _last_change(locked.pk)
        if last is not None:
            triage(member, last, state=Alert.Triage.EXPECTED)
        else:
            points = locked.points
            _expect(member, locked, float(nights_of(points).value.mean()), int(points[0]["number"]))
    trend.refresh_from_db()


def differences(alert: Alert) -> Comparison | None:
    """Both runs of a change point side by side; None when one of them is gone."""
    numbers = [run.number for run in ends(alert)]
    return compare(comparable_runs(alert.team, numbers)) if len(set(numbers)) == 2 else None


def ends(alert: Alert) -> list[Run]:
    """The runs on both sides of the change, as far as they are there and not in the trash."""
    return [run for run in (alert.run_before, alert.run_after) if run is not None and run.trashed_at is None]


def _last_change(trend_id: int) -> Alert | None:
    """The change point that led to the present level."""
    changes = Alert.objects.filter(trend_id=trend_id, kind=Alert.Kind.CHANGE, stands=True)
    return changes.filter(state=Alert.State.CONFIRMED).order_by("-after_at_s").first()


def _expect(member: Member, trend: Trend, value: float | None, since: int | None) -> None:
    trend.expected_value, trend.expected_since = value, since
    trend.save(update_fields=["expected_value", "expected_since"])
    subject = f"{label_of(trend.metric)} of {trend.series}"
    audit.record(member, "trend.expect", subject, after={"value": value, "since_run": since})


def _said(alert: Alert) -> dict[str, str]:
    return {
        "triage": alert.triage,
        "owner": alert.owner.get_username() if alert.owner else "",
        "note": alert.note,
    }
