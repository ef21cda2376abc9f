"""What is handed to a collector of traces."""

from __future__ import annotations

from django.db import models

from experiments.models.runs import Run


class RunTrace(models.Model):
    """The trace of a run that ended while a collector was set; it is made of the run's events when it is sent.

    `worker`: who executed the run last. `next_at`: when it is tried next, None once it is over; `sent_at`: when the
    collector took it. `problem`: what the last try met with.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="trace")
    worker = models.CharField(max_length=120, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)

    class Meta:
        indexes = [
            # What is due, asked every few seconds.
            models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="trace_due"),
        ]

    def __str__(self) -> str:
        return f"trace of run {self.run_id}"
