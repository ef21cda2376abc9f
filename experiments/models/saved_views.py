"""What people keep at hand: views of the list of runs, and trends on the Overview."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q

from experiments.models.history import Trend
from experiments.models.teams import Team, TeamOwnedQuerySet


class SavedViewQuerySet(TeamOwnedQuerySet):
    def seen_by(self, team: Team, user: User) -> SavedViewQuerySet:
        """The person's own views and those that others share with the team, by name."""
        return self.filter(Q(shared=True) | Q(owner=user), team=team).order_by("name", "pk")


class SavedView(models.Model):
    """A named view of the list of runs: `query` is the query string of its address (filter, order, columns)."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="views")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=4000, blank=True)
    shared = models.BooleanField(default=False)
    changed_at = models.DateTimeField(auto_now=True)

    objects = SavedViewQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "owner", "name"], name="view_name_once_per_owner")]

    def __str__(self) -> str:
        return self.name


class PinnedTrend(models.Model):
    """A trend that the team's Overview shows as a sparkline, in the order of pinning."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="pinned_trends")
    trend = models.ForeignKey(Trend, on_delete=models.CASCADE, related_name="+")
    pinned_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    pinned_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "trend"], name="trend_pinned_once_per_team")]

    def __str__(self) -> str:
        return f"{self.trend} on the Overview"
