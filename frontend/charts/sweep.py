"""The variants of a sweep over several factors as lines over parallel axes: an axis per factor, the last the metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from experiments.judging.comparing.factors import Level, levels_of
from experiments.models import Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec
from frontend.charts.ab import counts
from frontend.charts.metric import metric_json

FEWEST_FACTORS = 3
"""With two there is a map of both, with one the bars say it better."""


def sweep_json(
    metric: MetricSpec, factors: Mapping[str, Sequence[Level]], variants: Sequence[Variant], runs: Sequence[Run]
) -> dict[str, Any] | None:
    """The JSON of charts/sweep.js; None when fewer than three factors differ or nothing is measured yet."""
    figures = []
    for variant in variants:
        values = [run.metrics[metric.name] for run in runs if counts(run, variant, metric.name)]
        figures.append(mean(values) if values else None)
    if len(factors) < FEWEST_FACTORS or not any(figure is not None for figure in figures):
        return None
    return {
        "metric": metric_json(metric),
        "factors": [{"name": name, "levels": levels_of(values)} for name, values in factors.items()],
        "variants": [
            {
                "name": variant.name,
                "is_baseline": variant.is_baseline,
                "values": [values[position] for values in factors.values()],
                "figure": figures[position],
            }
            for position, variant in enumerate(variants)
        ],
    }
