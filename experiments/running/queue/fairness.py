"""Whose run is next: urgency, then whoever has the least running, then whoever waited longest since their last start.

Workers are shared by all teams, hosts belong to one. Between teams only "low" counts: it stands back behind everybody,
but no team gets ahead of another by calling its runs high. Inside a team high goes before normal before low. Waiting
makes a run more urgent, without a limit, so that nothing can pass it for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, F, IntegerField, OuterRef, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Extract, Floor, Now

from experiments.models import Member, Run

NEVER = datetime.min.replace(tzinfo=UTC)
Key = tuple[int, int, datetime, int, int, datetime, int]


@dataclass(frozen=True)
class Share:
    """What somebody, or a team, has of the workers: runs that are active now, and when the last one started."""

    active: int = 0
    last_start: datetime = NEVER


class Shares:
    """The shares of teams and of their members (by the ids of team and user)."""

    def __init__(self, of_members: Mapping[tuple[int, int], Share]) -> None:
        self._of_members = of_members

    def of_member(self, team_id: int, user_id: int | None) -> Share:
        """A person who has left the team counts as one who runs nothing."""
        return self._of_members.get((team_id, user_id), Share()) if user_id is not None else Share()

    def of_team(self, team_id: int) -> Share:
        return self._of_teams.get(team_id, Share())

    @cached_property
    def _of_teams(self) -> dict[int, Share]:
        found: dict[int, Share] = {}
        for (team_id, _), share in self._of_members.items():
            so_far = found.get(team_id, Share())
            found[team_id] = Share(so_far.active + share.active, max(so_far.last_start, share.last_start))
        return found

    def key(self, *, team_id: int, user_id: int | None, urgency: int, run_id: int, ahead: int = 0) -> Key:
        """Sorts waiting runs, the next one first. `ahead`: the person's own runs that will have started by then."""
        team, member = self.of_team(team_id), self.of_member(team_id, user_id)
        between_teams = min(urgency, Run.Priority.NORMAL)
        return (
            -between_teams,
            team.active,
            team.last_start,
            -urgency,
            member.active + ahead,
            member.last_start,
            run_id,
        )


def urgency() -> Cast:
    """The run's priority, one class more for every `BENCHHUB_AGEING_H` that it has waited; a column for a query."""
    waited = ExpressionWrapper(Now() - F("queued_at"), output_field=DurationField())
    return Cast(F("priority") + Floor(Extract(waited, "epoch") / (settings.BENCHHUB_AGEING_H * 3600)), IntegerField())


def shares_of(team_ids: Collection[int]) -> Shares:
    """The shares of all members of these teams, in one query."""
    theirs = Run.objects.filter(team=OuterRef("team"), created_by=OuterRef("user")).order_by()
    active = theirs.filter(state__in=Run.ACTIVE).values("team").annotate(count=Count("pk")).values("count")
    last = theirs.filter(started_at__isnull=False).order_by("-started_at").values("started_at")[:1]
    rows = (
        Member.objects.filter(team__in=team_ids)
        .annotate(active=Coalesce(Subquery(active), Value(0)), last_start=Subquery(last))
        .values_list("team_id", "user_id", "active", "last_start")
    )
    return Shares({(team, user): Share(count, started or NEVER) for team, user, count, started in rows})
