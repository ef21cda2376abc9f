"""The figures of a report: which runs count, and the mean of what they measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.analysis.interval import Mean, mean_of
from experiments.models import Experiment, Run, Variant
from experiments.summary import figure


def is_repetition(experiment: Experiment, run: Run, variant: Variant) -> bool:
    """Whether the run is a repetition of the variant that counts; those of an A/A check compare nothing."""
    return run.variant_id == variant.pk and run.is_usable and experiment.compares(run.block)


def figures_of(
    metric: str, variants: Sequence[Variant], counted: Mapping[int, Sequence[Run]]
) -> tuple[Mean | None, ...]:
    """The mean of the metric for each variant, in their order; None where no counted run has it."""
    return tuple(
        mean_of([value for run in counted[variant.pk] if (value := figure(run, metric)) is not None])
        for variant in variants
    )
