"""Many comparisons at once: p-values adjusted for the size of their family (docs/verdicts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class AdjustedFamily:
    """Adjusted p-values in the order in which the raw ones were given."""

    method: Literal["holm", "benjamini_hochberg"]
    adjusted_p: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many comparisons were corrected for; belongs beside every adjusted p."""
        return len(self.adjusted_p)

    def rejected(self, alpha: float = 0.05) -> tuple[bool, ...]:
        """For each comparison, whether it stays significant at `alpha`."""
        return tuple(p <= alpha for p in self.adjusted_p)


def holm(p_values: Sequence[float]) -> AdjustedFamily:
    """For metrics that gate: the chance of even one false alarm in the family stays below alpha (Holm 1979)."""
    p, order = _ordered(p_values)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return AdjustedFamily("holm", _back(steps, order))


def benjamini_hochberg(p_values: Sequence[float]) -> AdjustedFamily:
    """For an exploratory matrix: the expected share of false alarms among the findings stays below alpha.

    Source: Benjamini and Hochberg 1995.
    """
    p, order = _ordered(p_values)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    steps = np.minimum.accumulate(scaled[::-1])[::-1]
    return AdjustedFamily("benjamini_hochberg", _back(steps, order))


@dataclass(frozen=True)
class Family:
    """What the correction makes of one comparison: whether it `stands` at the family's alpha."""

    method: Literal["holm", "benjamini_hochberg"]
    size: int
    adjusted_p: float
    stands: bool


def families_of(family: AdjustedFamily, alpha: float = 0.05) -> tuple[Family | None, ...]:
    """One entry per comparison in the order given; None when there is only one, which needs no correction."""
    if family.size < 2:
        return (None,) * family.size
    return tuple(Family(family.method, family.size, p, p <= alpha) for p in family.adjusted_p)


def _ordered(p_values: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=float)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"p-values lie between 0 and 1; got {list(p_values)}")
    return p, np.argsort(p, kind="stable")


def _back(steps: NDArray[np.float64], order: NDArray[np.intp]) -> tuple[float, ...]:
    adjusted = np.empty_like(steps)
    adjusted[order] = np.minimum(steps, 1.0)
    return tuple(float(p) for p in adjusted)
