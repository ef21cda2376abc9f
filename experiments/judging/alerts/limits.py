"""The limits by which a history is searched, and where each comes from: the narrowest place that sets it wins.

From wide to narrow: the default, the team, a metric in all series, a series, a metric in a series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db import transaction
from django.db.models import Q
from pydantic import ValidationError

from agents.base.model import first_problem
from experiments.analysis.changepoints import HISTORY, Settings
from experiments.analysis.thresholds import OF_HISTORY, Thresholds
from experiments.models import HistoryLimits, Member, Role, Series, Team
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

Origin = Literal["default", "metric's default", "team", "metric", "series", "metric in series"]
NAMES = tuple(name for name in Thresholds.model_fields if name.startswith(OF_HISTORY))
_MARGIN = "history_margin_ratio"


@dataclass(frozen=True)
class EffectiveLimit:
    """A limit as it counts in one place, and where it was set."""

    name: str
    value: float | bool
    origin: Origin


@dataclass(frozen=True)
class EffectiveLimits:
    """All limits of one metric in one series, in the order of the settings page."""

    rows: tuple[EffectiveLimit, ...]

    def __getitem__(self, name: str) -> float | bool:
        return next(row.value for row in self.rows if row.name == OF_HISTORY + name)

    @property
    def settings(self) -> Settings:
        """How the search for change points looks."""
        return Settings(
            window=int(self["window"]),
            p=float(self["p"]),
            min_magnitude_ratio=float(self["margin_ratio"]),
            min_segment=int(self["confirmed_after"]),
            strict_p=HISTORY.strict_p,
            learns=HISTORY.learns,
            noise_floor_ratio=float(self["noise_floor_ratio"]),
        )

    @property
    def mutes_improvements(self) -> bool:
        return bool(self["mutes_improvements"])


@dataclass(frozen=True)
class SeriesLimits:
    """What was set for a series, read once for all of its trends."""

    of_team: Mapping[str, Any]
    stored: tuple[HistoryLimits, ...]

    @classmethod
    def read(cls, series: Series) -> SeriesLimits:
        stored = HistoryLimits.objects.filter(Q(series=series) | Q(series=None), team_id=series.team_id)
        return cls(series.team.thresholds, tuple(stored))

    def of(self, metric: MetricSpec) -> EffectiveLimits:
        """The limits that count for the metric in the series."""
        return _effective(self.of_team, (one for one in self.stored if one.metric in ("", metric.name)), metric)


def limits_in(team: Team, series: Series | None, metric: str) -> EffectiveLimits:
    """The limits of a part of the team's histories, as its page shows them. RequestError: no such metric."""
    stored = HistoryLimits.objects.filter(team=team, metric__in={"", metric})
    stored = stored.filter(Q(series=series) | Q(series=None)) if series else stored.filter(series=None)
    spec = metric_named(team.pk, metric) if metric else None
    return _effective(team.thresholds, stored, spec)


def limits_set(team: Team) -> list[HistoryLimits]:
    """What the team set for parts of its histories, the widest first."""
    found = HistoryLimits.objects.for_team(team).select_related("series")
    return sorted(found, key=lambda one: (one.series_id or 0, one.metric))


def change_limits(
    member: Member, changes: Mapping[str, float | bool | None], *, series: Series | None = None, metric: str = ""
) -> None:
    """Set limits of a part of the team's histories, None = as in the wider one. For admins.

    They count from the next run on. RequestError names the limit that is not of histories, or has no such value.
    """
    require(member, Role.ADMIN)
    if series is None and not metric:
        raise RequestError("Name a series, a metric or both; what holds for all is set by name alone.", field="metric")
    if metric:
        metric_named(member.team_id, metric)
    for name in changes:
        if name not in NAMES:
            raise RequestError(f"Of a part of the histories one can set {', '.join(NAMES)}.", field=name[:60])
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        stored = HistoryLimits.objects.filter(team=team, series=series, metric=metric).first()
        before = dict(stored.values) if stored else {}
        after = {name: value for name, value in {**before, **changes}.items() if value is not None}
        after = _checked(after)
        if after == before:
            return
        if not after and stored:
            stored.delete()
        else:
            HistoryLimits.objects.update_or_create(team=team, series=series, metric=metric, defaults={"values": after})
        subject = "history limits of " + " in ".join(part for part in (metric, str(series or "")) if part)
        record(member, "thresholds.change", subject, before=before, after=after)


def _effective(
    of_team: Mapping[str, Any], stored: Iterable[HistoryLimits], metric: MetricSpec | None
) -> EffectiveLimits:
    places: list[tuple[Origin, Mapping[str, Any]]] = [
        ("default", {name: Thresholds.model_fields[name].default for name in NAMES}),
        ("metric's default", {_MARGIN: metric.noise_floor_ratio} if metric else {}),
        ("team", {name: of_team[name] for name in NAMES if name in of_team}),
    ]
    for one in sorted(stored, key=lambda one: (one.series_id is not None, bool(one.metric))):
        origin: Origin = "metric" if one.series_id is None else "metric in series" if one.metric else "series"
        places.append((origin, one.values))
    found: dict[str, EffectiveLimit] = {}
    for origin, values in places:
        found |= {name: EffectiveLimit(name, value, origin) for name, value in values.items() if name in NAMES}
    return EffectiveLimits(tuple(found[name] for name in NAMES))


def _checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are stored. RequestError names the first that is none."""
    try:
        checked = Thresholds.model_validate(dict(values))
    except ValidationError as error:
        place, problem = first_problem(error)
        raise RequestError(f"{problem}.", field=str(place[0]) if place else next(iter(values), "")) from error
    return {name: getattr(checked, name) for name in values}
