"""Trends that a team keeps on its Overview."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from experiments.judging.alerts.wording import trend_name
from experiments.models import Member, PinnedTrend, Role, Team, Trend
from experiments.registry.errors import Conflict
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_PINNED = 12


def pinned_trends(team: Team) -> QuerySet[PinnedTrend]:
    """The pinned trends with their points, in the order of pinning."""
    found: QuerySet[PinnedTrend] = PinnedTrend.objects.for_team(team).select_related("trend__series")
    return found.order_by("pk")


def pin_trend(member: Member, trend: Trend) -> None:
    """Show the trend on the team's Overview. Launchers may."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        Team.objects.select_for_update(of=("self",)).get(pk=member.team_id)
        pinned = PinnedTrend.objects.for_team(member.team)
        if pinned.filter(trend=trend).exists():
            return
        if pinned.count() >= MAX_PINNED:
            raise Conflict(f"The Overview shows at most {MAX_PINNED} trends; unpin one first.")
        PinnedTrend.objects.create(team=member.team, trend=trend, pinned_by=member.user)
        audit.record(member, "trend.pin", f"{label_of(trend.metric)} of {trend_name(trend)}")


def unpin_trend(member: Member, trend: Trend) -> None:
    """Take the trend off the team's Overview. Launchers may."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        gone, _ = PinnedTrend.objects.for_team(member.team).filter(trend=trend).delete()
        if gone:
            audit.record(member, "trend.unpin", f"{label_of(trend.metric)} of {trend_name(trend)}")
