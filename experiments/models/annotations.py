"""What people know about a moment that no monitor saw: a note on a trend, or on the timeline of a run."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from experiments.models.results import Series
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class Annotation(models.Model):
    """A note at a moment of a series or of a run."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="annotations")
    series = models.ForeignKey(Series, null=True, on_delete=models.CASCADE, related_name="annotations")
    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="annotations")
    at = models.DateTimeField()
    text = models.CharField(max_length=200)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    written_at = models.DateTimeField(auto_now=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(series=None) ^ Q(run=None), name="annotation_is_of_one_thing"),
        ]

    def __str__(self) -> str:
        return self.text
