"""An experiment's runs as a table: a row per variant, a column per block, the better the darker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.interval import Mean, mean_of
from experiments.models import Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec
from frontend.charts.ab import counts

SHADES = 5


@dataclass(frozen=True)
class MatrixCell:
    """`look` is the shade: heat-1 (worst) to heat-5 (best), heat-bad, heat-live or nothing; `icon` says it as well."""

    run: Run | None
    value: float | None
    look: str
    word: str
    icon: str = ""

    @property
    def icon_label(self) -> str:
        """What the icon says that no word beside it does."""
        return {"up": "among the best", "down": "among the worst"}.get(self.icon, "")


@dataclass(frozen=True)
class MatrixRow:
    variant: Variant
    cells: tuple[MatrixCell, ...]
    mean: Mean | None


@dataclass(frozen=True)
class Matrix:
    """`labels` name the blocks in their order; those of an A/A check come first."""

    blocks: tuple[int, ...]
    labels: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


def matrix_of(variants: Sequence[Variant], runs: Sequence[Run], metric: MetricSpec, *, first_block: int = 0) -> Matrix:
    """`first_block` is the first one that compares variants; what is before it does not enter the mean."""
    blocks = tuple(sorted({run.block for run in runs if run.block is not None}))
    by_place = {(run.variant_id, run.block): run for run in sorted(runs, key=lambda run: run.number)}
    values = [run.metrics[metric.name] for v in variants for run in runs if counts(run, v, metric.name)]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)

    def cell(variant: Variant, block: int) -> MatrixCell:
        run = by_place.get((variant.pk, block))
        if run is None:
            return MatrixCell(None, None, "", "")
        if run.is_live:
            queued = run.state == Run.State.QUEUED
            look, icon = ("", "clock") if queued else ("heat-live", "spinner")
            return MatrixCell(run, None, look, run.get_state_display().capitalize(), icon)
        if not counts(run, variant, metric.name):
            word = _why_not(run)
            return MatrixCell(run, run.metrics.get(metric.name), "heat-bad", word, "cross")
        value = run.metrics[metric.name]
        rank = (value - low) / (high - low) if high > low else 0.5
        shade = 1 + round((rank if metric.higher_is_better else 1 - rank) * (SHADES - 1))
        icon = {1: "down", SHADES: "up"}.get(shade, "") if high > low else ""
        if run.validity == Run.Validity.SUSPECT:
            return MatrixCell(run, value, f"heat-{shade}", run.get_validity_display(), "warning")
        return MatrixCell(run, value, f"heat-{shade}", "", icon)

    rows = []
    for variant in variants:
        counted = [
            run.metrics[metric.name]
            for run in runs
            if counts(run, variant, metric.name) and (run.block or 0) >= first_block
        ]
        rows.append(MatrixRow(variant, tuple(cell(variant, block) for block in blocks), mean_of(counted)))
    labels = tuple(f"A/A {b + 1}" if b < first_block else f"Block {b + 1 - first_block}" for b in blocks)
    return Matrix(blocks, labels, tuple(rows))


def _why_not(run: Run) -> str:
    if run.outcome != Run.Outcome.SUCCEEDED:
        return run.get_outcome_display()
    return "no figure" if run.validity in Run.USABLE else run.get_validity_display()
