"""Tuning searches: which configuration of a recipe is the best, and the runs that tell."""

from __future__ import annotations

from django.db import models

from experiments.models.documents import Recipe
from experiments.models.hosts import Host
from experiments.models.inquiries import Inquiry
from experiments.models.runs import Run
from experiments.models.teams import Team


class Tuning(Inquiry):
    """Everything that decides what is tried next; the rest is in its trials.

    `space` is what may be tried (`experiments.asking.tunings.space`), `default` the configuration to compare with,
    `limits` metrics with the values that they must keep. `best` is what looks best so far: selected, so optimistic.
    `winner` and the gain with its interval are the confirmed answer, as ratios; None without one. `smallest` is the
    winner without what may go (docs/tuning.md), `smaller_recipe` the version that was made of it. `warm`: it began with
    what was better before, which `space` has among its starts.
    `confirm_after_hours`: so long it pauses before its confirmation, None = not; `confirms_at` is when that pause ends,
    set once it has begun. `taken_up_at`: so many of its trials were over when a person last took it up again after its
    end, `looks`: as often were the pairs of its finalists looked at, more than once after more budget, `looked_at`: so
    many of its trials were over at the last time.
    """

    class Outcome(models.TextChoices):
        NONE = "", "no answer"
        BETTER = "better"
        NOTHING_BETTER = "nothing_better", "nothing better"
        BUDGET_TOO_SMALL = "budget_too_small", "budget too small"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tunings")
    space = models.JSONField()
    default = models.JSONField()
    metric = models.CharField(max_length=60)
    higher_is_better = models.BooleanField()
    limits = models.JSONField(default=list)
    margin_ratio = models.FloatField(default=0.03)
    budget_runs = models.PositiveSmallIntegerField()
    budget_hours = models.FloatField(null=True)
    seed = models.PositiveIntegerField()
    paused = models.BooleanField(default=False)
    warm = models.BooleanField(default=True, db_default=True)
    confirm_after_hours = models.FloatField(null=True)
    confirms_at = models.DateTimeField(null=True)
    reduces = models.BooleanField(default=False)
    taken_up_at = models.PositiveSmallIntegerField(default=0, db_default=0)
    looks = models.PositiveSmallIntegerField(default=1, db_default=1)
    looked_at = models.PositiveSmallIntegerField(default=0, db_default=0)
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.NONE, blank=True)
    best = models.JSONField(null=True)
    winner = models.JSONField(null=True)
    gain_ratio = models.FloatField(null=True)
    low_ratio = models.FloatField(null=True)
    high_ratio = models.FloatField(null=True)
    more_runs = models.PositiveIntegerField(null=True)
    smallest = models.JSONField(null=True)
    smaller_recipe = models.ForeignKey(Recipe, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        # The list of a team's tuning searches, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="tuning_newest")]

    @property
    def suts(self) -> list[Host]:
        """Every server of it; the `host` of a trial is a place in this list."""
        return [self.sut, *(one.host for one in self.further_suts.select_related("host__site", "host__profile"))]


class TuningSut(models.Model):
    """A server of a tuning search beside its SUT, equal to it. `position` counts from 1, the SUT's own place is 0.

    `confirms`: only the confirmation is made there, and nowhere else; it is the last one.
    """

    tuning = models.ForeignKey(Tuning, on_delete=models.CASCADE, related_name="further_suts")
    position = models.PositiveSmallIntegerField()
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+")
    confirms = models.BooleanField(default=False)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["tuning", "position"], name="one_tuning_sut_per_position"),
            models.UniqueConstraint(fields=["tuning", "host"], name="one_part_per_tuning_sut"),
        ]

    def __str__(self) -> str:
        return f"{self.tuning_id}/{self.position}"


class TuningTrial(models.Model):
    """One run of a tuning search: planned while it has no run. `position` counts from 0, so it is launched only once.

    `figure` is the objective, `bounded` the limited metrics in the order of the limits; both only of a trial that is
    ok. `host` is a place in the search's `suts`. `block` is the pair of a confirmation, or the block of the reduction,
    to which it belongs; the default's run of a pair may serve a second finalist.
    """

    class Purpose(models.TextChoices):
        CONTROL = "control"
        EXPLORE = "explore"
        REPEAT = "repeat"
        CONFIRM = "confirm"
        REVERT = "revert", "reduce"

    SELECTED = (Purpose.EXPLORE, Purpose.REPEAT)
    """Whose figures are those of the luckiest among many, and so optimistic."""

    class Result(models.TextChoices):
        NONE = "", "not over"
        OK = "ok", "measured"
        INVALID = "invalid"
        CRASHED = "crashed"
        REFUSED = "refused"

    tuning = models.ForeignKey(Tuning, on_delete=models.CASCADE, related_name="trials")
    position = models.PositiveSmallIntegerField()
    purpose = models.CharField(max_length=8, choices=Purpose.choices)
    config = models.JSONField()
    why = models.CharField(max_length=200)
    host = models.PositiveSmallIntegerField(default=0)
    block = models.PositiveSmallIntegerField(default=0)
    run = models.OneToOneField(Run, null=True, on_delete=models.CASCADE, related_name="tuning_trial")
    result = models.CharField(max_length=8, choices=Result.choices, default=Result.NONE, blank=True)
    reason = models.TextField(blank=True)
    figure = models.FloatField(null=True)
    bounded = models.JSONField(default=list)
    start_hours = models.FloatField(default=0.0)
    duration_s = models.FloatField(default=0.0)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["tuning", "position"], name="one_tuning_trial_per_position")]

    def __str__(self) -> str:
        return f"{self.tuning_id}/{self.position}"
