"""Searches for the largest rate that a server sustains under a latency objective, and their trials."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from experiments.models.documents import Application, Recipe, Workload
from experiments.models.hosts import DriverSet, Host
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class CapacitySearch(models.Model):
    """Everything that decides which rate comes next; the rest is in its trials. `sentence` says how it ended."""

    class State(models.TextChoices):
        RUNNING = "running"
        FINISHED = "finished"
        STOPPED = "stopped", "stopped without an answer"
        CANCELLED = "cancelled"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="searches")
    name = models.CharField(max_length=120)
    application = models.ForeignKey(Application, on_delete=models.PROTECT, related_name="+")
    recipe = models.ForeignKey(Recipe, on_delete=models.PROTECT, related_name="+")
    parameters = models.JSONField(default=dict)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="+")
    sut = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    drivers = models.ForeignKey(DriverSet, on_delete=models.PROTECT, related_name="+")
    objective_metric = models.CharField(max_length=60)
    objective_ms = models.FloatField()
    start_low_rps = models.FloatField()
    start_high_rps = models.FloatField()
    width_ratio = models.FloatField(default=0.02)
    step_rps = models.FloatField(default=1.0)
    labels = models.JSONField(default=dict)
    priority = models.SmallIntegerField(choices=Run.Priority.choices, default=Run.Priority.NORMAL)
    state = models.CharField(max_length=16, choices=State.choices, default=State.RUNNING)
    sentence = models.TextField(blank=True)
    low_rps = models.FloatField(null=True)
    high_rps = models.FloatField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        # The list of a team's searches, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="search_newest")]

    def __str__(self) -> str:
        return self.name


class SearchTrial(models.Model):
    """One trial: an ordinary run at a rate of its own. `position` counts from 0, so a trial is launched only once."""

    class Result(models.TextChoices):
        NONE = "", "not over"
        PASSED = "pass", "passed"
        FAILED = "fail", "failed"
        INVALID = "invalid"

    search = models.ForeignKey(CapacitySearch, on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField()
    rate_rps = models.FloatField()
    phase = models.CharField(max_length=10)
    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="trial")
    result = models.CharField(max_length=8, choices=Result.choices, default=Result.NONE, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["search", "position"], name="one_trial_per_position")]

    def __str__(self) -> str:
        return f"{self.search_id}/{self.position} at {self.rate_rps:g}"
