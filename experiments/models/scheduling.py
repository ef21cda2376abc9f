"""Schedules: an experiment or a run that is launched again by the clock, and what became of each occasion."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django_celery_beat.models import CrontabSchedule

from experiments.models.experiments import Experiment
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class Schedule(models.Model):
    """Launches a copy of `experiment`, or `run` again, at the times of `crontab`.

    It acts for `runs_as`, who saved or resumed it last. `due_at` is the next time, None while it is paused.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        PAUSED = "paused"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=120)
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.CASCADE, related_name="schedules")
    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="schedules")
    crontab = models.ForeignKey(CrontabSchedule, on_delete=models.PROTECT, related_name="+")
    newest_versions = models.BooleanField(default=True)
    """Whether each launch takes the newest versions of application, recipe and workload."""
    skips_unchanged = models.BooleanField(default=False)
    labels = models.JSONField(default=dict)
    priority = models.SmallIntegerField(choices=Run.Priority.choices, default=Run.Priority.NORMAL)
    state = models.CharField(max_length=8, choices=State.choices, default=State.ACTIVE)
    state_reason = models.TextField(blank=True)
    due_at = models.DateTimeField(null=True)
    runs_as = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="schedule_name_once_per_team"),
            models.CheckConstraint(
                condition=models.Q(experiment=None) ^ models.Q(run=None), name="schedule_launches_one_thing"
            ),
        ]
        # What is due, asked every few seconds.
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(due_at__isnull=False), name="schedule_due"),
        ]

    def __str__(self) -> str:
        return self.name


class Occasion(models.Model):
    """One time at which a schedule was due: launched, skipped or failed, and why. A due time exists only once."""

    class Outcome(models.TextChoices):
        LAUNCHED = "launched"
        OVERLAP = "overlap", "skipped: the last one is open"
        UNCHANGED = "unchanged", "skipped: nothing changed"
        FAILED = "failed"

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="occasions")
    due_at = models.DateTimeField()
    at = models.DateTimeField(auto_now_add=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    sentence = models.TextField(blank=True)
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.SET_NULL, related_name="+")
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")
    contents = models.JSONField(default=dict)
    """What was launched, by part: a digest or a name; equal contents are "nothing changed"."""

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["schedule", "due_at"], name="one_occasion_per_due_time")]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.due_at:%Y-%m-%d %H:%M}: {self.outcome}"
