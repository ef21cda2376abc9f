"""The map of two factors as a table: the better the stronger the colour, and what each factor does in words."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.two_factors import Change
from experiments.judging.comparing.rankings import FactorMap, MapCell
from experiments.registry.metrics.vocabulary import MetricSpec
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
        tuple(_effects(found)),
        _note(found),
    )


def _effects(found: FactorMap) -> list[ShownEffect]:
    """The own effects of both factors, and those together that hold: of the others there is nothing to say."""
    if found.effects is None:
        return []
    lines = []
    for factor, levels, base, changes in (
        (found.factors[0], found.rows, found.base[0], found.effects.first),
        (found.factors[1], found.columns, found.base[1], found.effects.second),
    ):
        for change in changes:
            what = f"{factor} {parameter_text(levels[change.at[0]])} in place of {parameter_text(levels[base])}"
            lines.append(_shown(what, change))
    for change in found.effects.together:
        if change.stands:
            a, b = parameter_text(found.rows[change.at[0]]), parameter_text(found.columns[change.at[1]])
            what = f"{found.factors[0]} {a} with {found.factors[1]} {b}, beyond what each does alone"
            lines.append(_shown(what, change))
    return lines


def _shown(what: str, change: Change) -> ShownEffect:
    low, high = change.ci95_pct
    word = {True: "holds", False: "does not hold", None: ""}[change.stands]
    return ShownEffect(what, change.change_pct / 100, low / 100, high / 100, word)


def _note(found: FactorMap) -> str:
    if found.effects is None:
        return "What each factor does by itself needs three repetitions of every pair that count."
    if found.effects.n < MIN_FOR_VERDICT:
        return f"Fewer than {MIN_FOR_VERDICT} repetitions: nothing is said to hold yet."
    if any(change.stands for change in found.effects.together):
        return ""
    return "No pair does more or less than the product of what both do alone, as far as these repetitions show."
