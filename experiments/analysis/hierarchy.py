"""Repetitions inside repetitions (Kalibera and Jones 2013): which level the noise comes from, and where to repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.analysis.distributions import student_quantile


@dataclass(frozen=True)
class Hierarchy:
    """`counts`, `s2` and `t2` go from the innermost level to the top one.

    `s2` is the observed variance of a level, `t2` what the level itself adds to it; at or below 0 it adds nothing.
    `half_width` is that of the 95 % interval of `mean`: only the number of top-level repetitions counts for it.
    """

    mean: float
    counts: tuple[int, ...]
    s2: tuple[float, ...]
    t2: tuple[float, ...]
    half_width: float

    @property
    def noise_shares(self) -> tuple[float, ...]:
        """What share of the variance of one innermost value comes from each level; together 1, or all 0."""
        own = [max(t2, 0.0) for t2 in self.t2]
        total = sum(own)
        return tuple(t2 / total if total > 0 else 0.0 for t2 in own)


def hierarchy_of(values: Sequence[Any], *, confidence_ratio: float = 0.95) -> Hierarchy:
    """Analyse values[top]...[innermost], for example [restart][run][window]; every level has the same count throughout.

    ValueError: a level has fewer than two repetitions, or the counts differ.
    """
    try:
        y = np.asarray(values, dtype=float)
    except ValueError as error:
        raise ValueError("every repetition of a level must hold the same number of repetitions below it") from error
    if y.ndim == 0 or min(y.shape) < 2:
        shape = " x ".join(map(str, y.shape)) or "one value"
        raise ValueError(f"every level needs two repetitions or more; got {shape}")
    counts = tuple(reversed(y.shape))
    s2: list[float] = []
    means = y
    for _ in counts:
        s2.append(float(np.var(means, axis=-1, ddof=1).mean()))
        means = means.mean(axis=-1)
    t2 = [s2[0]] + [s2[i] - s2[i - 1] / counts[i - 1] for i in range(1, len(counts))]
    top = counts[-1]
    half_width = student_quantile(top - 1, (1 + confidence_ratio) / 2) * math.sqrt(s2[-1] / top)
    return Hierarchy(float(y.mean()), counts, tuple(s2), tuple(t2), half_width)


def best_repetitions(t2: Sequence[float], costs: Sequence[float]) -> tuple[int, ...]:
    """How often to repeat each level below the top one, innermost first, for the narrowest interval per unit of cost.

    `t2[i]` is the variance that level i adds, in the square of the figure's unit; `costs[i]` is what one repetition of
    it costs, say in seconds (both innermost first, one for every level). A level whose upper neighbour adds no noise of
    its own should be repeated without limit: 0 stands for that. ValueError: a cost is missing or not positive.
    """
    if len(t2) != len(costs) or min(costs) <= 0:
        raise ValueError("give a positive cost for every level")
    found = []
    for lower in range(len(t2) - 1):
        inner, outer = max(t2[lower], 0.0), max(t2[lower + 1], 0.0)
        if inner == 0:
            found.append(1)
        elif outer == 0:
            found.append(0)
        else:
            # Rounded first, so that the last bits do not lift an exact square root to the next number.
            found.append(max(1, math.ceil(round(math.sqrt(costs[lower + 1] / costs[lower] * inner / outer), 9))))
    return tuple(found)
