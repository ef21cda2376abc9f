"""What BenchHub knows of itself: its workers, its queues, and counts that only ever grow."""

from __future__ import annotations

from django.db import models

from experiments.models.teams import Team


class Worker(models.Model):
    """A worker process that said it is there. One that has been silent for long is gone; its row says since when.

    `process` is also how the owners of runs begin: host:pid, behind the site or the token of one that is not central,
    as machines of two sites may be called alike. `slots`: how many tasks it does at the same time;
    0 = not known. `site`: whose hosts it reaches, "" = the central one. `team`: whose runs alone it takes, None = those
    of all teams. `queues`: from which it takes messages; one that fetches its runs over HTTPS has none.
    `clock_ahead_s`: its clock against the database's, at `seen_at`.
    """

    name = models.CharField(max_length=120)
    process = models.CharField(max_length=120, unique=True)
    queues = models.JSONField(default=list)
    site = models.CharField(max_length=40, blank=True)
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="+")
    slots = models.PositiveSmallIntegerField(default=0)
    version = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    clock_ahead_s = models.FloatField(default=0.0)

    def __str__(self) -> str:
        return self.name

    @property
    def host_and_pid(self) -> str:
        """As people know it, with a colon between."""
        return self.process.rpartition("/")[2]


class Canary(models.Model):
    """The last message that was sent through a queue to see whether anybody takes it: late = the queue is stuck.

    `clock_ahead_s`: the clock of whoever sent it against the database's.
    """

    queue = models.CharField(max_length=60, unique=True)
    sent_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)
    delay_s = models.FloatField(null=True)
    clock_ahead_s = models.FloatField(default=0.0)

    def __str__(self) -> str:
        return self.queue


class Tally(models.Model):
    """A counter for the metrics page, kept where a restart loses nothing: name, label, and the value so far."""

    name = models.CharField(max_length=60)
    label = models.CharField(max_length=60, blank=True)
    value = models.FloatField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="one_tally_per_label")]

    def __str__(self) -> str:
        return f"{self.name}{{{self.label}}} {self.value:g}"
