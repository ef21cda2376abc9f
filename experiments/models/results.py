"""What a run measured: a team's own metrics, in-run series as arrays, and the tools' own files."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Coalesce, Length

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
    """One channel of one run: two arrays of equal length, not a row per point. `at_s` counts from measuring's start.

    Kept in months, as the run's events are.
    """

    pk = models.CompositePrimaryKey("run_id", "role", "channel")
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="samples"
    )
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
    """A file of a run as the tool wrote it.

    Its content is in the row, or `stored` is its name outside of the database and `stored_bytes` how large it is there.
    Only `experiments.registry.runs.file_store` reads and writes what is there.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=120)
    media_type = models.CharField(max_length=60, default="text/plain; charset=utf-8")
    sha256 = models.CharField(max_length=64)
    content = models.BinaryField(null=True)
    stored = models.CharField(max_length=200, null=True, unique=True, editable=False)  # noqa: DJ001 - unique where there is one
    stored_bytes = models.BigIntegerField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="artifact_name_once_per_run"),
            models.CheckConstraint(
                condition=models.Q(content__isnull=False, stored__isnull=True, stored_bytes__isnull=True)
                | models.Q(content__isnull=True, stored__isnull=False, stored_bytes__isnull=False),
                name="artifact_content_in_one_place",
            ),
        ]

    def __str__(self) -> str:
        return self.name


ARTIFACT_BYTES = Coalesce(models.F("stored_bytes"), Length("content"))
"""How large the content of a file is, for queries: wherever it is, and without reading it."""


class UnusedFile(models.Model):
    """A name outside of the database that no file of a run has any more, or not yet, since `seen_at` at least."""

    stored = models.CharField(max_length=200, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.stored
