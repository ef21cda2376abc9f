"""What a run measured: a team's own metrics, in-run series as arrays, and the tools' own files."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from experiments.models.hosts import HardwareProfile
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class Metric(models.Model):
    """A team's own figure, as the newest run or workload that has it declares it.

    `experiments.registry.metrics.vocabulary` has all others.

    `followed`: judged in experiments beside what decides, and searched for change points in histories.
    """

    class Direction(models.TextChoices):
        HIGHER = "higher", "higher is better"
        LOWER = "lower", "lower is better"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="metrics")
    name = models.CharField(max_length=60)
    unit = models.CharField(max_length=20)
    direction = models.CharField(max_length=8, choices=Direction.choices)
    followed = models.BooleanField(default=False)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="one_metric_per_name")]

    def __str__(self) -> str:
        return self.name


class Series(models.Model):
    """The history that runs with one fingerprint form. Kept beside the runs so that choosing one scans no runs."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="series")
    fingerprint = models.CharField(max_length=64)
    application = models.CharField(max_length=120)
    workload = models.CharField(max_length=120)
    tool = models.CharField(max_length=60)
    latency_basis = models.CharField(max_length=20)
    sut_profile = models.ForeignKey(HardwareProfile, null=True, on_delete=models.PROTECT, related_name="+")
    last_run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "fingerprint"], name="one_series_per_fingerprint")]

    def __str__(self) -> str:
        return f"{self.title} · {self.tool}"

    @property
    def title(self) -> str:
        """Application and workload; what was measured elsewhere may have one name for both."""
        return self.application if self.application == self.workload else f"{self.application} · {self.workload}"


class SampleSeries(models.Model):
    """One channel of one run: two arrays of equal length, not a row per point. `at_s` counts from measuring's start."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="samples")
    role = models.CharField(max_length=12)
    channel = models.CharField(max_length=120)
    unit = models.CharField(max_length=20)
    at_s = ArrayField(models.FloatField())
    values = ArrayField(models.FloatField())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "role", "channel"], name="one_series_per_channel")]

    def __str__(self) -> str:
        return f"{self.run_id} {self.role} {self.channel}"


class LatencySpectrum(models.Model):
    """The latency histogram of a run's measured phase: samples at or below each value. Added up, never averaged."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="spectrum")
    values_ms = ArrayField(models.FloatField())
    counts = ArrayField(models.BigIntegerField())
    exact = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.run_id}: {self.counts[-1]} samples"


class Artifact(models.Model):
    """A file of a run as the tool wrote it; kept in the database so that every web and worker process can read it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=60, default="text/plain; charset=utf-8")
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="artifact_name_once_per_run")]

    def __str__(self) -> str:
        return self.name
