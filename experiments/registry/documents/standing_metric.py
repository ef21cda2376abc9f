"""The metric that stands for a run of a workload: what an experiment is judged by unless somebody says otherwise."""

from __future__ import annotations

from experiments.models import Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.vocabulary import THROUGHPUT


def standing_metric(workload: Workload) -> str:
    """Its name: the first figure of the load tool in the tool's own unit, or the throughput in requests/s."""
    headlines = content_of(workload).driver.headlines()
    return headlines[0] if headlines else THROUGHPUT
