"""What short checks of hosts gave: the same each time, so that a host that got slower is seen."""

from __future__ import annotations

from django.db import models

from experiments.models.experiments import Experiment
from experiments.models.hosts import Host


class HostCanary(models.Model):
    """One check of a host. `value` is in the unit of `agents.running.canaries`, None with the `problem` in words.

    `peer`: the host at the other end, of a check of the network. `experiment`: the one that it was made before.
    """

    host = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="canaries")
    peer = models.ForeignKey(Host, null=True, on_delete=models.CASCADE, related_name="+")
    experiment = models.ForeignKey(Experiment, null=True, on_delete=models.SET_NULL, related_name="host_canaries")
    check_name = models.CharField(max_length=12)
    value = models.FloatField(null=True)
    problem = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        # The history of one check of a host, newest first.
        indexes = [models.Index(fields=["host", "check_name", "-id"], name="host_canary_newest")]

    def __str__(self) -> str:
        return f"{self.check_name} of {self.host}"
