"""Searches for the largest rate that a server sustains under a latency objective, and their trials."""

from __future__ import annotations

from django.db import models

from experiments.models.inquiries import Inquiry
from experiments.models.runs import Run
from experiments.models.teams import Team


class CapacitySearch(Inquiry):
    """Everything that decides which rate comes next; the rest is in its trials.

    `coverage_ratio` is how many of such intervals hold the limit at least; None until it is over, and for searches
    that ended when that was not known.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="searches")
    objective_metric = models.CharField(max_length=60)
    objective_ms = models.FloatField()
    start_low_rps = models.FloatField()
    start_high_rps = models.FloatField()
    width_ratio = models.FloatField(default=0.02)
    step_rps = models.FloatField(default=1.0)
    low_rps = models.FloatField(null=True)
    high_rps = models.FloatField(null=True)
    coverage_ratio = models.FloatField(null=True)

    class Meta:
        # The list of a team's searches, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="search_newest")]


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
