"""The variants of a sweep over several factors as lines over parallel axes: an axis per factor, the last the metric."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

from experiments.models import Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec
from frontend.charts.ab import counts
from frontend.charts.metric import metric_json

OFFERED_RATE, CONCURRENCY = "offered rate", "connections or users"
FEWEST_FACTORS = 3
"""With fewer the table of variants and the bars say it better."""


def factors_of(variants: Sequence[Variant]) -> dict[str, list[str | float]]:
    """What differs between the variants: factor -> its value in each of them, "" where it has none."""
    names = dict.fromkeys(name for variant in variants for name in variant.parameters)
    columns: dict[str, list[str | float]] = {
        "application": [variant.application.name for variant in variants],
        "recipe": [variant.recipe.name for variant in variants],
        "server host": [variant.sut.name for variant in variants],
        OFFERED_RATE: [variant.offered_rate_rps or "" for variant in variants],
        CONCURRENCY: [variant.concurrency or "" for variant in variants],
        **{name: [_value(variant.parameters.get(name, "")) for variant in variants] for name in names},
    }
    return {name: values for name, values in columns.items() if len(set(values)) > 1}


def sweep_json(metric: MetricSpec, variants: Sequence[Variant], runs: Sequence[Run]) -> dict[str, Any] | None:
    """The JSON of charts/sweep.js; None when fewer than three factors differ or nothing is measured yet."""
    factors = factors_of(variants)
    figures = []
    for variant in variants:
        values = [run.metrics[metric.name] for run in runs if counts(run, variant, metric.name)]
        figures.append(mean(values) if values else None)
    if len(factors) < FEWEST_FACTORS or not any(figure is not None for figure in figures):
        return None
    return {
        "metric": metric_json(metric),
        "factors": [{"name": name, "levels": _levels(values)} for name, values in factors.items()],
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


def _value(value: Any) -> str | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _levels(values: Sequence[str | float]) -> list[str | float]:
    """The values that occur, numbers ascending, then words in their order."""
    numbers = sorted({value for value in values if not isinstance(value, str)})
    return [*numbers, *dict.fromkeys(value for value in values if isinstance(value, str))]
