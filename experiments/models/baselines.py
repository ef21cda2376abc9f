"""Baselines that a team pinned: a run with a name, against which other runs are held."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class PinnedBaseline(models.Model):
    """A run that others are compared with, by its name within the team ("release 11.0").

    `fingerprint`: of the run's series when every run of that series is held against it; empty = only where it is named.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="baselines")
    name = models.CharField(max_length=80)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="pinned_as")
    fingerprint = models.CharField(max_length=64, blank=True)
    pinned_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    pinned_at = models.DateTimeField(auto_now=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="baseline_name_once_per_team"),
            models.UniqueConstraint(
                fields=["team", "fingerprint"], condition=~Q(fingerprint=""), name="one_baseline_per_series"
            ),
        ]

    def __str__(self) -> str:
        return self.name
