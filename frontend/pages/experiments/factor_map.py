"""The map of two factors as a table: the better the stronger the colour, and what each factor does in words."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.judging.comparing.rankings import FactorMap, MapCell
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.telling.reports.rankings import FactorEffect, effects_of, note_of
from frontend.pages.experiments.matrix import SHADES
from frontend.shared.forms.parameters import parameter_text


@dataclass(frozen=True)
class ShownCell:
    """`look` is its shade, `icon` says the best and the worst as well; `cell` is None where no variant is."""

    cell: MapCell | None
    look: str = ""
    icon: str = ""

    @property
    def icon_label(self) -> str:
        """What the icon says that no word beside it does."""
        return {"up": "among the best", "down": "among the worst"}.get(self.icon, "")


@dataclass(frozen=True)
class ShownEffect:
    """One change: what of, its size with its interval as ratios, and whether it holds ("" = too few repetitions)."""

    what: str
    change_ratio: float
    low_ratio: float
    high_ratio: float
    word: str


@dataclass(frozen=True)
class ShownMap:
    """`note` says why there are no effects, or why nothing is said to hold."""

    factors: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ShownCell, ...]], ...]
    effects: tuple[ShownEffect, ...]
    note: str


def shown_map(found: FactorMap, metric: MetricSpec) -> ShownMap:
    """The map as the page shows it."""
    values = [cell.mean.value for row in found.cells for cell in row if cell and cell.mean]
    low, high = (min(values), max(values)) if values else (0.0, 0.0)

    def shown(cell: MapCell | None) -> ShownCell:
        if cell is None or cell.mean is None or high <= low:
            return ShownCell(cell)
        share = (cell.mean.value - low) / (high - low)
        shade = 1 + round((share if metric.higher_is_better else 1 - share) * (SHADES - 1))
        return ShownCell(cell, f"heat-{shade}", {1: "down", SHADES: "up"}.get(shade, ""))

    return ShownMap(
        found.factors,
        tuple(map(parameter_text, found.columns)),
        tuple(
            (parameter_text(level), tuple(map(shown, row))) for level, row in zip(found.rows, found.cells, strict=True)
        ),
        tuple(map(_shown, effects_of(found))),
        note_of(found),
    )


def _shown(effect: FactorEffect) -> ShownEffect:
    low, high = effect.ci95_pct
    return ShownEffect(effect.what, effect.change_pct / 100, low / 100, high / 100, effect.word)
