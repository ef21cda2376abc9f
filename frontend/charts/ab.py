"""The repetitions of each variant, as static/js/charts/ab.js draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.analysis.interval import mean_of
from experiments.models import Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.summary import figure
from frontend.charts.metric import metric_json


def ab_json(metric: MetricSpec, variants: Sequence[Variant], runs: Sequence[Run]) -> dict[str, Any]:
    """Per variant the repetitions that count, their mean and its 95 % interval."""
    found = []
    for variant in variants:
        counted = [(run.number, run.metrics[metric.name]) for run in runs if counts(run, variant, metric.name)]
        mean = mean_of([value for _, value in counted])
        found.append(
            {
                "name": variant.name,
                "is_baseline": variant.is_baseline,
                "mean": mean.value if mean else None,
                "low": mean.ci95[0] if mean and mean.ci95 else None,
                "high": mean.ci95[1] if mean and mean.ci95 else None,
                "repetitions": [{"number": number, "value": value} for number, value in counted],
            }
        )
    return {"metric": metric_json(metric), "variants": found}


def counts(run: Run, variant: Variant, metric: str) -> bool:
    """Whether the run is a repetition of the variant whose figure may be used."""
    return run.repeats(variant) and figure(run, metric) is not None
