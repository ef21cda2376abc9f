"""What the questions that BenchHub answers step by step have in common: searches, bisections, tuning searches."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models

from experiments.models.documents import Application, Recipe, Workload
from experiments.models.hosts import DriverSet, Host
from experiments.models.runs import Run
from experiments.models.teams import TeamOwnedQuerySet


class InquiryQuerySet(TeamOwnedQuerySet):
    def with_names(self) -> Self:
        """With the names that lists and pages show."""
        found = self.select_related("application", "recipe", "workload", "sut", "drivers", "created_by")
        return found.prefetch_related("drivers__hosts")


class Inquiry(models.Model):
    """A question about one setup, answered by launching one thing after another.

    `sentence` says how it ended; of one that is running, for which quota of the team its next step waits.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        FINISHED = "finished"
        STOPPED = "stopped", "stopped without an answer"
        CANCELLED = "cancelled"

    team_id: int
    """Each kind has a `team` of its own, for the team's side has a name for each."""
    name = models.CharField(max_length=120)
    application = models.ForeignKey(Application, on_delete=models.PROTECT, related_name="+")
    recipe = models.ForeignKey(Recipe, on_delete=models.PROTECT, related_name="+")
    parameters = models.JSONField(default=dict)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="+")
    sut = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    drivers = models.ForeignKey(DriverSet, on_delete=models.PROTECT, related_name="+")
    labels = models.JSONField(default=dict)
    priority = models.SmallIntegerField(choices=Run.Priority.choices, default=Run.Priority.NORMAL)
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    sentence = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    objects = InquiryQuerySet.as_manager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name
