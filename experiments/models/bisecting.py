"""Bisections: which of an ordered list of candidates is the first that is worse than the good one."""

from __future__ import annotations

from django.db import models

from experiments.models.experiments import Experiment
from experiments.models.inquiries import Inquiry
from experiments.models.teams import Team


class Bisection(Inquiry):
    """Everything that decides what is compared next; the rest is in its steps.

    `candidates` are in order, the good one first, the bad one last: values of the recipe's parameter `parameter`, or
    version numbers of the recipe when that is empty. `low` and `high` are the positions of the last one that is known
    not to be worse and of the first one that is known to be.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="bisections")
    parameter = models.CharField(max_length=60, blank=True)
    candidates = models.JSONField()
    metric = models.CharField(max_length=60, default="throughput_rps")
    margin_ratio = models.FloatField(default=0.03)
    max_blocks = models.PositiveSmallIntegerField(default=20)
    low = models.PositiveSmallIntegerField(default=0)
    high = models.PositiveSmallIntegerField(null=True)

    class Meta:
        # The list of a team's bisections, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="bisection_newest")]

    @property
    def names(self) -> list[str]:
        """The candidates as people read them: a version of the recipe has its v."""
        return list(self.candidates) if self.parameter else [f"v{version}" for version in self.candidates]


class BisectionStep(models.Model):
    """One step: an ordinary experiment of the good one against candidate number `index`."""

    class Result(models.TextChoices):
        NONE = "", "not over"
        GOOD = "good", "not worse"
        BAD = "bad", "worse"
        UNCLEAR = "unclear"

    bisection = models.ForeignKey(Bisection, on_delete=models.CASCADE, related_name="steps")
    position = models.PositiveSmallIntegerField()
    index = models.PositiveSmallIntegerField()
    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="bisection_step")
    result = models.CharField(max_length=8, choices=Result.choices, default=Result.NONE, blank=True)
    sentence = models.TextField(blank=True)
    estimate_pct = models.FloatField(null=True)
    ci95_low_pct = models.FloatField(null=True)
    ci95_high_pct = models.FloatField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["bisection", "position"], name="one_step_per_position")]

    def __str__(self) -> str:
        return f"{self.bisection_id}/{self.position}"
