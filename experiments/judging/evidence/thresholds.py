"""A team's own limits for the validity checks: kept as what differs from the defaults, changed by admins."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from pydantic import ValidationError

from agents.base.model import first_problem
from experiments.analysis.thresholds import Thresholds
from experiments.models import Member, Role, Team
from experiments.registry.errors import RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record


def thresholds_of(team: Team) -> Thresholds:
    """The limits by which the team's runs are judged. Names of an earlier version of BenchHub are passed by."""
    known = {name: value for name, value in team.thresholds.items() if name in Thresholds.model_fields}
    return Thresholds.model_validate(known)


def change_thresholds(member: Member, changes: Mapping[str, float | None]) -> Thresholds:
    """Set limits, None = back to the default. They count for runs that end from now on (and see `rejudge`).

    RequestError names the limit that has no such value. The audit trail gets what changed.
    """
    require(member, Role.ADMIN)
    for name in changes:
        if name not in Thresholds.model_fields:
            raise RequestError(f"There is no threshold {name[:60]!r}.", field=name[:60])
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        before = thresholds_of(team).changed()
        wanted = {name: value for name, value in {**before, **changes}.items() if value is not None}
        try:
            thresholds = Thresholds.model_validate(wanted)
        except ValidationError as error:
            place, problem = first_problem(error)
            raise RequestError(f"{problem}.", field=str(place[0]) if place else next(iter(changes), "")) from error
        after = thresholds.changed()
        if after != before:
            team.thresholds = after
            team.save(update_fields=["thresholds"])
            record(member, "thresholds.change", "validity thresholds", before=before, after=after)
    member.team.thresholds = after
    return thresholds
