"""A metric, as every chart module names it."""

from __future__ import annotations

from typing import Any

from experiments.registry.metrics.vocabulary import MetricSpec


def metric_json(metric: MetricSpec) -> dict[str, Any]:
    """What a chart says of its metric: the words, the unit, and which way is better."""
    return {
        "name": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
    }
