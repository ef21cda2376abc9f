"""What each of two factors does over all values of the other, and what they do together (docs/verdicts.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.families import holm
from experiments.analysis.limits import ALPHA, MIN_FOR_INTERVAL, MIN_FOR_VERDICT
from experiments.analysis.resolution import rounding_of_mean, step_of
from experiments.analysis.verdict import ROUNDING, Arms, Interval, LogChange

Cell = Mapping[int, float]
"""The figures of one pair of levels: block -> figure, positive."""
Place = tuple[int, int]
"""A pair of levels: the index of the first factor's, the index of the second's."""
Grid = NDArray[np.float64]
"""A number for each pair of levels: a row per level of the first factor, a column per level of the second."""


@dataclass(frozen=True)
class Change:
    """A change in percent, with its 95 % interval, and whether it `stands` once all of its family are corrected for.

    `at` are the levels that it is of: (level,) of a factor's own effect, (first, second) of both together.
    `adjusted_p` and `stands` are None where there are too few repetitions for a verdict.
    """

    at: tuple[int, ...]
    change_pct: float
    ci95_pct: Interval
    adjusted_p: float | None
    stands: bool | None


@dataclass(frozen=True)
class Effects:
    """`first` and `second`: from the base level of a factor to another, the mean over all levels of the other factor.

    `together`: by how much a pair of levels differs from the product of what each does alone, beside the base of the
    other. `n` is the number of repetitions: of complete blocks, or of the smallest cell.
    """

    first: tuple[Change, ...]
    second: tuple[Change, ...]
    together: tuple[Change, ...]
    n: int


def effects(
    cells: Mapping[Place, Cell], shape: Place, base: Place, design: Arms, alpha: float = ALPHA
) -> Effects | None:
    """The effects of two factors with so many levels (`shape`) from the `base`; None when the grid is not whole.

    Whole: every pair of levels has three repetitions or more; `blocked`: in three or more blocks that all pairs have.
    Figures have one unit and are compared as logs, so that effects are ratios. The own effects of both factors are one
    family, what pairs do together another (Holm at `alpha`). ValueError: a figure is not positive.
    Source: Box, Hunter and Hunter, Statistics for Experimenters, 2005, chapter 5; Welch 1947; Holm 1979.
    """
    logs = _logs(cells, shape, design)
    if logs is None:
        return None
    n = min(len(values) for values in logs.values())
    step = step_of([value for cell in cells.values() for value in cell.values()])
    off = {place: -math.log1p(-min(0.9, rounding_of_mean(np.exp(values), step))) for place, values in logs.items()}
    own = [(0, level) for level in range(shape[0]) if level != base[0]]
    own += [(1, level) for level in range(shape[1]) if level != base[1]]
    pairs = [(a, b) for a, b in product(range(shape[0]), range(shape[1])) if a != base[0] and b != base[1]]
    of_own = [((level,), _change(_own(shape, base, factor, level), logs, off, design)) for factor, level in own]
    of_pairs = [(pair, _change(_together(shape, base, pair), logs, off, design)) for pair in pairs]
    alpha_or_none = alpha if n >= MIN_FOR_VERDICT else None
    firsts = sum(factor == 0 for factor, _ in own)
    singles, together = _family(of_own, alpha_or_none), _family(of_pairs, alpha_or_none)
    return Effects(singles[:firsts], singles[firsts:], together, n)


def _logs(cells: Mapping[Place, Cell], shape: Place, design: Arms) -> dict[Place, NDArray[np.float64]] | None:
    """The logs of each pair of levels, blocked: of the blocks that all have, in one order; None when one lacks some."""
    places = list(product(range(shape[0]), range(shape[1])))
    found = {place: cells.get(place, {}) for place in places}
    if not all(value > 0 and math.isfinite(value) for cell in found.values() for value in cell.values()):
        raise ValueError("only positive numbers can be compared; leave invalid runs out")
    if design == "blocked":
        common = sorted(set.intersection(*(set(cell) for cell in found.values())))
        found = {place: {block: cell[block] for block in common} for place, cell in found.items()}
    if min(shape) < 2 or min(map(len, found.values())) < MIN_FOR_INTERVAL:
        return None
    return {place: np.log(np.array(list(cell.values()), dtype=np.float64)) for place, cell in found.items()}


def _own(shape: Place, base: Place, factor: int, level: int) -> Grid:
    """The weights of a level's mean less the base level's."""
    weights = np.zeros(shape)
    lines = weights if factor == 0 else weights.T
    lines[level] += 1 / lines.shape[1]
    lines[base[factor]] -= 1 / lines.shape[1]
    return weights


def _together(shape: Place, base: Place, at: Place) -> Grid:
    """The weights of what both do together less what each does alone."""
    weights = np.zeros(shape)
    for (a, b), sign in (((at[0], at[1]), 1), ((at[0], base[1]), -1), ((base[0], at[1]), -1), (base, 1)):
        weights[a, b] += sign
    return weights


def _family(members: Sequence[tuple[tuple[int, ...], LogChange]], alpha: float | None) -> tuple[Change, ...]:
    """The changes, corrected together; without an alpha there are too few repetitions to say what stands."""
    adjusted = None if alpha is None else holm([change.p_value() for _, change in members]).adjusted_p
    found = []
    for place, (at, change) in enumerate(members):
        low, high = (100 * math.expm1(end) for end in change.interval(0.95))
        p = None if adjusted is None else adjusted[place]
        stands = None if p is None or alpha is None else p <= alpha
        found.append(Change(at, 100 * math.expm1(change.estimate), (low, high), p, stands))
    return tuple(found)


def _change(
    weights: Grid, logs: Mapping[Place, NDArray[np.float64]], off: Mapping[Place, float], design: Arms
) -> LogChange:
    """The weighted sum of the means: Student's t of the blocks' own sums, or Satterthwaite's degrees of freedom.

    `off` is by how much rounding may shift each mean.
    """
    rounding = math.fsum(abs(float(weights[place])) * own for place, own in off.items())
    used = [(float(weights[place]), values) for place, values in logs.items() if weights[place]]
    if design == "blocked":
        sums = np.sum([weight * values for weight, values in used], axis=0)
        deviation = float(sums.std(ddof=1))
        return LogChange(float(sums.mean()), deviation / math.sqrt(len(sums)), len(sums) - 1, deviation, rounding)
    estimate = math.fsum(weight * float(values.mean()) for weight, values in used)
    parts = [(weight**2 * float(values.var(ddof=1)) / len(values), len(values) - 1) for weight, values in used]
    variance = math.fsum(part for part, _ in parts)
    if math.sqrt(variance) <= ROUNDING:
        return LogChange(estimate, 0.0, float(sum(degrees for _, degrees in parts)), 0.0, rounding)
    degrees = variance**2 / math.fsum(part**2 / own for part, own in parts)
    return LogChange(estimate, math.sqrt(variance), degrees, math.sqrt(variance), rounding)
