"""Profiles of runs: where the CPU time of a server went, folded; the profiler's own text is a file of the run."""

from __future__ import annotations

import re

from django.db import models

from experiments.models.runs import Run

OTHER_EVENTS = frozenset(
    {
        *("wall", "alloc", "live", "lock", "block", "mutex", "contention", "delay", "goroutine", "threadcreate"),
        *("heap", "offcpu", "inuse", "malloc", "nativemem", "nativelock", "faults", "fault", "misses", "references"),
        *("switches", "migrations", "branches", "loads", "stores"),
    }
)
"""Words in the names of what profilers sample that is no CPU time: it has no CPU microseconds per request."""
_WORD = re.compile(r"[a-z0-9]+")


class RunProfile(models.Model):
    """One profile of one run. `folded` is what `agents.profiles.packing` makes of it; empty texts and None: not known.

    `role` "" is the server under test. The window is on the load's clock: seconds from where measuring began. CPU time
    and requests are those of the window. `file` names the artifact of the run that holds what the profiler wrote.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="profiles")
    name = models.CharField(max_length=80)
    role = models.CharField(max_length=12, blank=True)
    profiler = models.CharField(max_length=40)
    event = models.CharField(max_length=60, blank=True)
    engine = models.CharField(max_length=60, blank=True)
    unit = models.CharField(max_length=12)
    form = models.CharField(max_length=20)
    start_s = models.FloatField(null=True)
    end_s = models.FloatField(null=True)
    cpu_time_s = models.FloatField(null=True)
    requests = models.BigIntegerField(null=True)
    samples = models.BigIntegerField(null=True)
    lost_samples = models.BigIntegerField(null=True)
    unknown_ratio = models.FloatField()
    stacks = models.PositiveIntegerField()
    folded = models.BinaryField()
    file = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="profile_name_once_per_run")]

    def __str__(self) -> str:
        return self.name

    @property
    def counts_cpu(self) -> bool:
        """Whether the weights stand for CPU time; what does not say what it counts is taken for that."""
        event = self.event.lower().replace("off-cpu", "offcpu")
        return self.unit != "bytes" and not OTHER_EVENTS.intersection(_WORD.findall(event))

    @property
    def cost_us(self) -> float | None:
        """CPU microseconds per request of what was profiled; None when CPU time or requests are not known, and of what
        is no CPU time."""
        if self.cpu_time_s is None or not self.requests or self.cpu_time_s <= 0 or not self.counts_cpu:
            return None
        return self.cpu_time_s * 1e6 / self.requests
