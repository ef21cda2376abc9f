"""What a team wants to be told of besides changes of level: rules of its own, and what broke them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from experiments.models.experiments import Experiment
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class AlertRule(models.Model):
    """One rule. `metric`, `side` and `limit` (in the metric's unit) are of figures alone; "" and {} watch all runs."""

    class Kind(models.TextChoices):
        FIGURE = "figure", "a figure of a run beyond a limit"
        VERDICT = "verdict", "a candidate is worse, or fails"
        RUN_FAILED = "run_failed", "a run failed or was lost"

    class Side(models.TextChoices):
        ABOVE = "above"
        BELOW = "below"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alert_rules")
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    metric = models.CharField(max_length=60, blank=True)
    side = models.CharField(max_length=5, choices=Side.choices, blank=True)
    limit = models.FloatField(null=True)
    workload = models.CharField(max_length=120, blank=True)
    labels = models.JSONField(default=dict)
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="alert_rule_name_once_per_team")]

    def __str__(self) -> str:
        return self.name


class BrokenRule(models.Model):
    """One time that a rule was broken: by a run, or by the verdicts of an experiment."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="broken")
    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="+")
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.CASCADE, related_name="+")
    sentence = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["rule", "-id"], name="broken_rule_newest")]

    def __str__(self) -> str:
        return self.sentence
