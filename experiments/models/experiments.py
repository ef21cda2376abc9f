"""An experiment is a question; its variants are the answers that compete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from django.conf import settings
from django.db import models

from experiments.models.documents import Application, Recipe, Workload
from experiments.models.hosts import DriverSet, Host
from experiments.models.teams import Team, TeamOwnedQuerySet


class ExperimentQuerySet(TeamOwnedQuerySet):
    def for_team(self, team: Team) -> Self:
        """What is in the trash is found by `experiments.keeping.retention` alone."""
        return super().for_team(team).filter(trashed_at=None)


class Experiment(models.Model):
    class Order(models.TextChoices):
        BLOCKS = "blocks", "blocks in random order"
        INTERLEAVED = "interleaved"
        SEQUENTIAL = "sequential"

    class State(models.TextChoices):
        DRAFT = "draft"
        RUNNING = "running"
        PAUSED = "paused", "paused"
        BLOCKED = "blocked", "blocked by its A/A check"
        FINISHED = "finished"
        CANCELLED = "cancelled"

    class StopRule(models.TextChoices):
        FIXED = "fixed", "after the repetitions"
        UNTIL_CLEAR = "until_clear", "when the verdict is clear"
        UNTIL_NOT_WORSE = "until_not_worse", "when it is worse, or not worse beyond the margin"
        UNTIL_PRECISE = "until_precise", "when the interval is narrow enough"

    AA_PAIRS = 5
    """Pairs of runs of the baseline against itself in an A/A check: as many as a verdict needs."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="experiments")
    name = models.CharField(max_length=120)
    question = models.CharField(max_length=400, blank=True)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="experiments")
    repetitions = models.PositiveSmallIntegerField(default=5)
    order = models.CharField(max_length=16, choices=Order.choices, default=Order.BLOCKS)
    primary_metric = models.CharField(max_length=60, default="throughput_rps")
    margin_ratio = models.FloatField(default=0.03)
    gate_metrics = models.JSONField(default=list)
    stop_rule = models.CharField(max_length=16, choices=StopRule.choices, default=StopRule.FIXED)
    target_ratio = models.FloatField(null=True)
    max_blocks = models.PositiveSmallIntegerField(default=20)
    max_hours = models.FloatField(null=True)
    profilers = models.JSONField(default=list)
    """Each block has a twin of each run with these, which counts nowhere."""
    aa_first = models.BooleanField(default=False)
    canaries_first = models.BooleanField(default=False)
    aa_result = models.JSONField(default=dict)
    state_reason = models.TextField(blank=True)
    seed = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State.choices, default=State.DRAFT)
    labels = models.JSONField(default=dict)
    notes = models.TextField(blank=True)
    notes_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    notes_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    is_demo = models.BooleanField(default=False)
    trashed_at = models.DateTimeField(null=True)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        # The list of a team's experiments, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="experiment_newest")]

    def __str__(self) -> str:
        return self.name

    @property
    def first_block(self) -> int:
        """The number of the first block that compares variants; the blocks before it are the A/A check's."""
        return 2 * self.AA_PAIRS if self.aa_first else 0

    def compares(self, block: int | None) -> bool:
        """Whether a run of this block compares variants; one of the A/A check does not, and enters no mean."""
        return block is None or block >= self.first_block

    @property
    def is_sequential(self) -> bool:
        """Whether all repetitions of a variant run before those of the next: then there are no blocks to pair."""
        return self.order == self.Order.SEQUENTIAL

    @property
    def deciding_metrics(self) -> tuple[str, ...]:
        """The metrics that a gate looks at: the primary one first."""
        return tuple(dict.fromkeys((self.primary_metric, *self.gate_metrics)))


HELD = (Experiment.State.PAUSED, Experiment.State.BLOCKED)
"""Queued runs of such an experiment do not start."""
UNDER_WAY = (Experiment.State.RUNNING, *HELD)
OPEN = (Experiment.State.DRAFT, *UNDER_WAY)
"""It may still have further runs."""


class Variant(models.Model):
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="variants")
    name = models.CharField(max_length=120)
    position = models.PositiveSmallIntegerField()
    is_baseline = models.BooleanField(default=False)
    application = models.ForeignKey(Application, on_delete=models.PROTECT, related_name="+")
    recipe = models.ForeignKey(Recipe, on_delete=models.PROTECT, related_name="+")
    parameters = models.JSONField(default=dict)
    sut = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    drivers = models.ForeignKey(DriverSet, on_delete=models.PROTECT, related_name="+")
    offered_rate_rps = models.FloatField(null=True)
    """In place of the workload's own rate: an experiment may sweep the load."""
    concurrency = models.PositiveIntegerField(null=True)
    """In place of the workload's connections or users."""
    spec = models.JSONField(null=True)
    """As frozen at the last launch: blocks that the stop rule adds are the same runs."""

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "name"], name="variant_name_once_per_experiment"),
            models.UniqueConstraint(
                fields=["experiment"], condition=models.Q(is_baseline=True), name="one_baseline_per_experiment"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class StoredVerdict(models.Model):
    """The verdict of one candidate against the baseline for one metric, as stored when its last run ended."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="verdicts")
    baseline = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="+")
    candidate = models.ForeignKey(Variant, on_delete=models.CASCADE, related_name="+")
    metric = models.CharField(max_length=60)
    outcome = models.CharField(max_length=40)
    sentence = models.TextField()
    numbers = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "baseline", "candidate", "metric"], name="one_verdict_per_pair_and_metric"
            )
        ]

    def __str__(self) -> str:
        return self.sentence

    @property
    def shown(self) -> str:
        """What the outcome is shown as: a difference that does not hold, and the reason that there is no verdict."""
        return shown_outcome(self.outcome, self.numbers)


def shown_outcome(outcome: str, numbers: Mapping[str, Any]) -> str:
    """What an outcome is shown as, by the numbers of its verdict (`experiments.analysis.outcomes` has the words)."""
    if outcome == "invalid":
        return str(numbers.get("undecided") or outcome)
    stands = (numbers.get("family") or {}).get("stands", True)
    return "not_held" if not stands and outcome.startswith(("better", "worse")) else outcome
