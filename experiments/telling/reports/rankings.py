"""The ranking of the variants and the map of two factors, as reports and pages say them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.interval import Mean
from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.two_factors import Change
from experiments.judging.comparing.factors import Level, experiment_factors
from experiments.judging.comparing.rankings import FactorMap, map_of, ranking_of
from experiments.models import Experiment, Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec

EMPTY = '""'
"""A level that is an empty text."""
STANDINGS = {
    "best": "best",
    "tied": "not distinguishable from the best",
    "behind": "behind the best",
    "open": "too few repetitions",
}


@dataclass(frozen=True)
class RankLine:
    """One variant, the best first. `change_pct` is against the best, None for the best itself."""

    variant: str
    is_baseline: bool
    mean: Mean
    change_pct: float | None
    ci95_pct: tuple[float, float] | None
    standing: str


@dataclass(frozen=True)
class ReportRanking:
    """`sentence` says which variants may be the best."""

    sentence: str
    lines: tuple[RankLine, ...]


@dataclass(frozen=True)
class FactorEffect:
    """One change: what of, its size with its interval in percent, whether it holds ("" = too few repetitions)."""

    what: str
    change_pct: float
    ci95_pct: tuple[float, float]
    word: str


@dataclass(frozen=True)
class MapRow:
    """A level of the first factor, and the mean at each level of the second: None without a variant or a figure."""

    level: str
    means: tuple[Mean | None, ...]


@dataclass(frozen=True)
class ReportMap:
    """`note` says why there are no effects, or why nothing is said to hold."""

    factors: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[MapRow, ...]
    effects: tuple[FactorEffect, ...]
    note: str


def report_ranking(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], metric: MetricSpec
) -> ReportRanking | None:
    """The variants by this figure; None when fewer than three have it. `runs` are those that compare."""
    found = ranking_of(experiment, variants, runs, metric)
    if found is None:
        return None
    lines = tuple(
        RankLine(
            one.variant.name,
            one.variant.is_baseline,
            one.mean,
            one.ranked.change_pct if place else None,
            one.ranked.ci95_pct,
            STANDINGS[one.standing if place else "best"],
        )
        for place, one in enumerate(found.lines)
    )
    return ReportRanking(found.sentence, lines)


def report_map(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], metric: MetricSpec
) -> ReportMap | None:
    """The map of the two factors in which the variants differ; None when there are not two."""
    found = map_of(experiment, experiment_factors(experiment, variants), variants, runs, metric)
    if found is None:
        return None
    rows = tuple(
        MapRow(level_text(level), tuple(cell.mean if cell else None for cell in cells))
        for level, cells in zip(found.rows, found.cells, strict=True)
    )
    return ReportMap(found.factors, tuple(map(level_text, found.columns)), rows, effects_of(found), note_of(found))


def effects_of(found: FactorMap) -> tuple[FactorEffect, ...]:
    """The own effects of both factors, and those together that hold: of the others there is nothing to say."""
    if found.effects is None:
        return ()
    lines = []
    for factor, levels, base, changes in (
        (found.factors[0], found.rows, found.base[0], found.effects.first),
        (found.factors[1], found.columns, found.base[1], found.effects.second),
    ):
        for change in changes:
            what = f"{factor} {level_text(levels[change.at[0]])} in place of {level_text(levels[base])}"
            lines.append(_effect(what, change))
    for change in found.effects.together:
        if change.stands:
            a, b = level_text(found.rows[change.at[0]]), level_text(found.columns[change.at[1]])
            what = f"{found.factors[0]} {a} with {found.factors[1]} {b}, beyond what each does alone"
            lines.append(_effect(what, change))
    return tuple(lines)


def note_of(found: FactorMap) -> str:
    """Why there are no effects, or why nothing is said to hold; "" when something does."""
    if found.effects is None:
        return "What each factor does by itself needs three repetitions of every pair that count."
    if found.effects.n < MIN_FOR_VERDICT:
        return f"Fewer than {MIN_FOR_VERDICT} repetitions: nothing is said to hold yet."
    if any(change.stands for change in found.effects.together):
        return ""
    return "No pair does more or less than the product of what both do alone, as far as these repetitions show."


def level_text(level: Level) -> str:
    """A level as people read it."""
    return f"{level:.12g}" if isinstance(level, float) else str(level) or EMPTY


def _effect(what: str, change: Change) -> FactorEffect:
    word = {True: "holds", False: "does not hold", None: ""}[change.stands]
    return FactorEffect(what, change.change_pct, change.ci95_pct, word)
