"""The figures of a report: which runs count, and the mean of what they measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.analysis.interval import Mean, mean_of
from experiments.models import Run, Variant
from experiments.registry.runs.summary import figure


def figures_of(
    metric: str, variants: Sequence[Variant], counted: Mapping[int, Sequence[Run]]
) -> tuple[Mean | None, ...]:
    """The mean of the metric for each variant, in their order; None where no counted run has it."""
    return tuple(
        mean_of([value for run in counted[variant.pk] if (value := figure(run, metric)) is not None])
        for variant in variants
    )
