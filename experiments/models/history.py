"""What became of a figure over time: a trend keeps its values in order, an alert says where they jumped or stopped."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from numpy.typing import NDArray

from experiments.models.results import Series
from experiments.models.runs import Run
from experiments.models.teams import Team, TeamOwnedQuerySet


class Trend(models.Model):
    """One metric of one recipe, with one choice of parameters, in a series; only runs that count.

    Its runs' figures (`points`) stand here in order of time, so that the end of a run reads one row and not thousands
    of runs; packed, as an array of 10,000 numbers takes the database driver longer to write than all the rest.
    `windows`: what the search for change points found so far, `[start, cut, ...]` each. `occasions_s`: the last times
    at which somebody measured, runs close together counted once; `due_at`: when the next one is overdue, None = not
    regular.
    `key` of a run: the id of its experiment's variant, else 0 or below for the boot that it ran on. What is searched
    and shown are points of several runs (`registry.runs.nights`).
    """

    POINT = np.dtype([("at_s", "<f8"), ("number", "<i8"), ("value", "<f8"), ("key", "<i8")])

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="trends")
    recipe = models.CharField(max_length=120, blank=True)
    variation = models.CharField(max_length=200, blank=True)
    metric = models.CharField(max_length=60)
    packed = models.BinaryField(default=bytes)
    length = models.PositiveIntegerField(default=0)
    windows = models.JSONField(default=list)
    occasions_s = ArrayField(models.FloatField(), default=list)
    last_experiment_id = models.BigIntegerField(null=True)
    due_at = models.DateTimeField(null=True)
    expected_value = models.FloatField(null=True)
    expected_since = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "recipe", "variation", "metric"], name="one_trend_per_line")
        ]
        # The watchdog asks every few minutes which ones are overdue.
        indexes = [models.Index(fields=["due_at"], name="trend_due", condition=Q(due_at__isnull=False))]

    def __str__(self) -> str:
        return f"{self.series_id} {self.recipe} {self.metric}"

    @property
    def points(self) -> NDArray[np.void]:
        """The runs' ends, numbers and values, oldest first."""
        return np.frombuffer(self.packed, self.POINT)

    @points.setter
    def points(self, points: NDArray[np.void]) -> None:
        self.packed, self.length = points.tobytes(), len(points)


class HistoryLimits(models.Model):
    """What a team set for a part of its histories: of a metric, of a series, or of a metric in a series.

    `values` are limits by their names in `analysis.thresholds`, those that begin with `history_`; what holds for all
    of the team stands in `Team.thresholds`.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="history_limits")
    series = models.ForeignKey(Series, null=True, on_delete=models.CASCADE, related_name="history_limits")
    metric = models.CharField(max_length=60, blank=True)
    values = models.JSONField(default=dict)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "series", "metric"], name="one_limits_per_series_and_metric"),
            models.UniqueConstraint(
                fields=["team", "metric"], condition=Q(series=None), name="one_limits_per_metric_of_all_series"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series_id or 'every series'} {self.metric or 'every metric'}"


class Alert(models.Model):
    """A change point of a trend, or data that stopped coming.

    `stands`: the data still show it. `muted`: an improvement where the team wants to hear of losses only: it is shown,
    and nobody is asked to look at it. `worse`: by the metric's direction. `causes`: what changed in the configuration,
    in short (`alerts_causes`). Of missing data only `run_before` and `before_at_s` are known: the last point there was.
    `told_at`: when members were told by mail; set at once when it was found in old data, of which nobody is told.
    """

    class Kind(models.TextChoices):
        CHANGE = "change", "change point"
        MISSING = "missing", "missing data"

    class State(models.TextChoices):
        SUSPECTED = "suspected"
        CONFIRMED = "confirmed"

    class Triage(models.TextChoices):
        UNTRIAGED = "untriaged"
        ACKNOWLEDGED = "acknowledged"
        EXPECTED = "expected"
        INFRA = "infra", "infrastructure"
        INVALID = "invalid", "not a change"
        FIXED = "fixed"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="alerts")
    trend = models.ForeignKey(Trend, on_delete=models.CASCADE, related_name="alerts")
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.CHANGE)
    state = models.CharField(max_length=10, choices=State.choices)
    stands = models.BooleanField(default=True)
    worse = models.BooleanField(default=False)
    muted = models.BooleanField(default=False)
    run_before = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="+")
    run_after = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="alerts")
    before_at_s = models.FloatField()
    after_at_s = models.FloatField(null=True)
    mean_before = models.FloatField(null=True)
    mean_after = models.FloatField(null=True)
    change_ratio = models.FloatField(null=True)
    n_before = models.PositiveIntegerField(default=0)
    n_after = models.PositiveIntegerField(default=0)
    p = models.FloatField(null=True)
    interval_s = models.FloatField(null=True)
    causes = models.JSONField(default=dict)
    found_at = models.DateTimeField(auto_now_add=True)
    confirmed_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)

    triage = models.CharField(max_length=12, choices=Triage.choices, default=Triage.UNTRIAGED)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    note = models.TextField(blank=True)
    triaged_at = models.DateTimeField(null=True)
    triaged_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        indexes = [
            # The list of alerts, newest first.
            models.Index(fields=["team", "-id"], name="alert_newest"),
            # The counter in the navigation of every page.
            models.Index(fields=["team"], name="alert_open", condition=Q(triage="untriaged", stands=True)),
        ]

    def __str__(self) -> str:
        return f"alert {self.pk}"

    @property
    def seen(self) -> str:
        """How sure the data are, in one word: suspected, confirmed, missing, or gone."""
        if not self.stands:
            return "gone"
        return self.kind if self.kind == self.Kind.MISSING else self.state

    @property
    def changed_at(self) -> datetime | None:
        """When the first run of the new level ended; None of missing data."""
        return None if self.after_at_s is None else datetime.fromtimestamp(self.after_at_s, UTC)

    @property
    def rose(self) -> bool:
        return (self.mean_after or 0.0) > (self.mean_before or 0.0)

    @property
    def tone(self) -> str:
        return "bad" if self.worse else "good"
