"""Tables of timers that an application printed: how often each action ran, and how long it took."""

from __future__ import annotations

from django.db import models

from experiments.models.runs import Run


class TimerTable(models.Model):
    """One table of one run. `rows`: each a `agents.results.timer_tables.TimerRow`; the text is a file of the run."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="timer_tables")
    name = models.CharField(max_length=60)
    rows = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="timer_table_name_once_per_run")]

    def __str__(self) -> str:
        return self.name
