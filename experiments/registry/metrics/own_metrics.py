"""The metrics of a team: those that BenchHub knows, those of its own benchmarks, and those of its systems' members."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db.models import Q

from agents.system import LOADED
from experiments.models import Application, Metric, Team
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import (
    METRICS,
    ROLE_FIGURES,
    THROUGHPUT,
    MetricSpec,
    own_metric,
    role_metric,
)
from experiments.registry.teams.audit import record

MOST_FOLLOWED = 4
"""A run with at most so many own figures has few enough for all of them to be judged and watched unasked."""
_MOST_NAMED = 40


def metrics_of(team_id: int, names: Iterable[str] | None = None) -> dict[str, MetricSpec]:
    """The team's metrics, or those among `names`: the known ones in their order, then its own by name.

    At the end those of the members of a system (`database.cpu_ratio`) that are among `names`, role by role.
    """
    if names is None:
        return METRICS | _own(team_id, Q())
    wanted = set(names)
    found = _declared(team_id, wanted)
    places = {figure: place for place, figure in enumerate(ROLE_FIGURES)}
    of_roles = [metric for name in wanted - found.keys() if (metric := role_metric(name))]
    of_roles.sort(key=lambda one: (one.name.partition(".")[0], places[one.name.partition(".")[2]]))
    return found | {one.name: one for one in of_roles}


def metric_named(
    team_id: int, name: str, *, field: str = "metric", of_members: Collection[str] | None = None
) -> MetricSpec:
    """The metric. RequestError names the field when the team has none of this name. `of_members`: `check_metrics`."""
    return check_metrics(team_id, [name], field=field, of_members=of_members)[name]


def check_metrics(
    team_id: int, names: Sequence[str], *, field: str, of_members: Collection[str] | None = None
) -> dict[str, MetricSpec]:
    """The metrics of these names. RequestError names the field and the first one that the team does not have.

    `of_members` are the figures of a system's members that count here; None = those of any of the team's applications.
    """
    found = _declared(team_id, {name for name in names if "\0" not in name})
    of_roles = [metric for name in names if name not in found and (metric := role_metric(name))]
    if of_members is not None:
        found |= {one.name: one for one in of_roles if one.name in of_members}
    elif of_roles:
        there = _roles_of(team_id, (one.name.partition(".")[0] for one in of_roles))
        found |= {one.name: one for one in of_roles if one.name.partition(".")[0] in there}
    if (unknown := next((name for name in names if name not in found), None)) is not None:
        known = [*metrics_of(team_id), *(of_members or ())]
        more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
        listed = ", ".join(known[:_MOST_NAMED])
        raise RequestError(f"There is no metric {unknown[:60]!r}; known: {listed}{more}.", field=field)
    return found


def followed_metrics(team_id: int, names: Iterable[str] | None = None) -> dict[str, MetricSpec]:
    """The team's own metrics, or those among `names`, that are judged and watched unasked."""
    if names is None:
        return _own(team_id, Q(followed=True))
    others = set(names) - METRICS.keys()
    return _own(team_id, Q(followed=True, name__in=others)) if others else {}


def standing_metrics(team_id: int, names: Iterable[str]) -> list[MetricSpec]:
    """The own metrics that stand for a run with these figures: those that are followed, else all of them.

    None where the run has a throughput in requests/s, which stands for it.
    """
    found = set(names)
    if THROUGHPUT in found or not (own := found - METRICS.keys()):
        return []
    return list((_own(team_id, Q(followed=True, name__in=own)) or _own(team_id, Q(name__in=own))).values())


def learn(
    team: Team, declared: Iterable[MetricSpec], *, follow: Collection[str] = (), few_as_well: bool = True
) -> None:
    """Remember unit and direction of own metrics; what is declared last counts. Call inside a transaction.

    New ones in `follow` are followed, and with `few_as_well` all of them when they are few: not those of a tool that
    says itself which figure stands for a run, as its time to connect is none.
    """
    newest = {one.name: one for one in declared if one.name not in METRICS}
    if not newest:
        return
    declared_before = Metric.objects.filter(team=team, name__in=newest).values_list("name", "unit", "direction")
    stored = {name: (unit, direction) for name, unit, direction in declared_before}
    changed = []
    for name in sorted(newest):  # in one order, so that two who learn at the same time do not wait for each other
        new, old = newest[name], stored.get(name)
        if old == (new.unit, new.direction):
            continue
        if old is not None:
            said = {"unit": old[0], "direction": old[1]}
            record(team, "metric.declare", name, before=said, after={"unit": new.unit, "direction": new.direction})
        followed = name in follow or (few_as_well and len(newest) <= MOST_FOLLOWED)
        changed.append(Metric(team=team, name=name, unit=new.unit, direction=new.direction, followed=followed))
    if not changed:  # in most cases, and with each result
        return
    Metric.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["team", "name"], update_fields=["unit", "direction"]
    )


def _declared(team_id: int, wanted: set[str]) -> dict[str, MetricSpec]:
    """Those among `wanted` that BenchHub knows, or that a benchmark of the team declared."""
    found = {name: metric for name, metric in METRICS.items() if name in wanted}
    return found | (_own(team_id, Q(name__in=others)) if (others := wanted - METRICS.keys()) else {})


def _roles_of(team_id: int, roles: Iterable[str]) -> set[str]:
    """Which of these roles a member of one of the team's applications has."""
    systems = Application.objects.filter(team_id=team_id, body__has_key="members")
    return {
        role
        for role in set(roles)
        if systems.filter(Q(body__role=role) | Q(body__members__contains=[{"role": role}])).exists()
        or (role == LOADED and systems.filter(~Q(body__has_key="role")).exists())
    }


def _own(team_id: int, which: Q) -> dict[str, MetricSpec]:
    rows = Metric.objects.filter(which, team_id=team_id).order_by("name")
    return {
        name: own_metric(name, unit, "higher" if direction == Metric.Direction.HIGHER else "lower")
        for name, unit, direction in rows.values_list("name", "unit", "direction")
    }
