"""The Prometheus servers of a team, and what is read from them around its runs."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class PrometheusSource(models.Model):
    """A Prometheus of a team, and what it is asked after each run.

    `secret` is the bearer token or the password, stored sealed. `queries` holds what `asking.prometheus.queries` reads.
    """

    class Auth(models.TextChoices):
        NONE = "none", "none"
        BEARER = "bearer", "bearer token"
        BASIC = "basic", "user and password"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="prometheus_sources")
    name = models.CharField(max_length=120)
    url = models.CharField(max_length=1000)
    auth = models.CharField(max_length=6, choices=Auth.choices, default=Auth.NONE)
    username = models.CharField(max_length=200, blank=True)
    secret = models.BinaryField(default=bytes, editable=False)
    queries = models.JSONField(default=list)
    is_active = models.BooleanField(default=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="prometheus_name_once_per_team")]

    def __str__(self) -> str:
        return self.name


class PrometheusReading(models.Model):
    """What was, or is to be, read of one source around one run.

    `next_at`: when it is tried next, None once it is over; `read_at`: when answers were stored last. `problem`: what
    the last try met with. `channels`: pairs of role and channel that were stored. `clock_ahead_s`: how far the
    server's clock was ahead of the run's for certain.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="prometheus_readings")
    source = models.ForeignKey(PrometheusSource, on_delete=models.CASCADE, related_name="readings")
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)
    channels = models.JSONField(default=list)
    clock_ahead_s = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "source"], name="one_reading_per_run_and_source")]
        indexes = [
            # What is due, asked every few seconds.
            models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="prometheus_due"),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} around run {self.run_id}"
