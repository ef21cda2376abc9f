"""The variants of an experiment in the order of a figure, and the map of two factors with what each of them does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.interval import Mean, mean_of
from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.ranking import Ranked, rank
from experiments.analysis.two_factors import Effects, effects
from experiments.analysis.verdict import Arms
from experiments.judging.comparing.factors import Level, levels_of
from experiments.judging.verdicts.judging import arms_of
from experiments.models import Experiment, Run, Variant
from experiments.registry.metrics.vocabulary import MetricSpec

FEWEST_RANKED = 3
"""Two variants are compared by their verdict."""


@dataclass(frozen=True)
class RankedVariant:
    """One line of the ranking; `mean` is of all of its repetitions that count."""

    variant: Variant
    mean: Mean
    ranked: Ranked

    @property
    def standing(self) -> str:
        """best, tied (not distinguishable from the best), behind, or open while there are too few repetitions."""
        if self.ranked.behind is None:
            return "open"
        if self.ranked.behind:
            return "behind"
        return "best" if self.ranked.change_pct == 0 and self.ranked.ci95_pct is None else "tied"


@dataclass(frozen=True)
class Ranking:
    """Best first. `sentence` says which of them may be the best."""

    lines: tuple[RankedVariant, ...]
    sentence: str


@dataclass(frozen=True)
class MapCell:
    """A pair of levels; `mean` is None where nothing counts yet."""

    variant: Variant
    mean: Mean | None


@dataclass(frozen=True)
class FactorMap:
    """Two factors: `rows` the levels of the first, `columns` those of the second, `cells` row by row.

    A cell is None where no variant has this pair. `effects` are from the levels `base`; None while they are not known.
    """

    factors: tuple[str, str]
    rows: tuple[Level, ...]
    columns: tuple[Level, ...]
    cells: tuple[tuple[MapCell | None, ...], ...]
    base: tuple[int, int]
    effects: Effects | None


def ranking_of(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], metric: MetricSpec
) -> Ranking | None:
    """The variants by this figure; None when fewer than three of them have one. `runs` are those that compare."""
    arms = arms_of(runs, metric.name)
    given = [arms.get(variant.pk, {}) for variant in variants]
    found = rank(given, higher_is_better=metric.higher_is_better, design=_design(experiment))
    lines = [
        RankedVariant(variants[one.arm], mean, one)
        for one in found
        if (mean := mean_of(list(given[one.arm].values()))) is not None
    ]
    return Ranking(tuple(lines), _sentence(lines)) if len(lines) >= FEWEST_RANKED else None


def map_of(
    experiment: Experiment,
    factors: Mapping[str, Sequence[Level]],
    variants: Sequence[Variant],
    runs: Sequence[Run],
    metric: MetricSpec,
) -> FactorMap | None:
    """The map of the two factors in which the variants differ; None when there are not two, or two are alike."""
    if len(factors) != 2:
        return None
    (first, firsts), (second, seconds) = factors.items()
    rows, columns = levels_of(firsts), levels_of(seconds)
    places = {
        (rows.index(a), columns.index(b)): variant for a, b, variant in zip(firsts, seconds, variants, strict=True)
    }
    if len(places) < len(variants) or min(len(rows), len(columns)) < 2:
        return None
    arms = arms_of(runs, metric.name)
    base = next((place for place, variant in places.items() if variant.is_baseline), (0, 0))
    cells = {place: arms.get(variant.pk, {}) for place, variant in places.items()}
    shape = (len(rows), len(columns))
    return FactorMap(
        (first, second),
        tuple(rows),
        tuple(columns),
        tuple(
            tuple(
                MapCell(places[a, b], mean_of(list(cells[a, b].values()))) if (a, b) in places else None
                for b in range(shape[1])
            )
            for a in range(shape[0])
        ),
        base,
        effects(cells, shape, base, _design(experiment)),
    )


def _design(experiment: Experiment) -> Arms:
    return "independent" if experiment.is_sequential else "blocked"


def _sentence(lines: Sequence[RankedVariant]) -> str:
    best, rest = lines[0], lines[1:]
    if not rest:
        return ""
    open_ones = [line for line in rest if line.standing == "open"]
    tied = [line for line in rest if line.standing == "tied"]
    if len(open_ones) == len(rest):
        return f"{best.variant.name} looks best so far; fewer than {MIN_FOR_VERDICT} repetitions tell none apart."
    if not tied and not open_ones:
        return f"{best.variant.name} is the best: each other variant is behind it."
    names = ", ".join(line.variant.name for line in (*tied, *open_ones))
    return f"{best.variant.name} looks best, and cannot be told from: {names}."
