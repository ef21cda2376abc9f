"""Arms in the order of their figures, and which of them cannot be told from the best (docs/verdicts.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.families import holm
from experiments.analysis.limits import ALPHA, MIN_FOR_INTERVAL, MIN_FOR_VERDICT
from experiments.analysis.resolution import step_of
from experiments.analysis.verdict import Arms, Interval, LogChange, log_change

Arm = Mapping[int, float]
"""Block -> figure, positive; what is missing is no repetition."""


@dataclass(frozen=True)
class Ranked:
    """One arm. `arm` is its place in what was ranked, `n` how many of its repetitions were compared with the best.

    `change_pct` is against the best, in percent of it, with its 95 % interval (None below three repetitions);
    `adjusted_p` is corrected for all pairs of arms. `behind`: it is not as good as the best; None = too few repetitions
    to say so. The best itself has a change of 0 and is not behind.
    """

    arm: int
    n: int
    change_pct: float
    ci95_pct: Interval | None
    adjusted_p: float | None
    behind: bool | None


def rank(arms: Sequence[Arm], *, higher_is_better: bool, design: Arms, alpha: float = ALPHA) -> tuple[Ranked, ...]:
    """The arms that have a figure, the best first; figures of one unit, compared as ratios of geometric means.

    Whichever looks best was chosen by its figures, so each arm is compared with each, and all of these comparisons are
    corrected together (Holm): the chance of even one false difference stays below `alpha`. ValueError: a figure is not
    positive. Source: Holm 1979; docs/verdicts.md.
    """
    logs = {place: {block: _log(value) for block, value in arm.items()} for place, arm in enumerate(arms) if arm}
    sign = -1 if higher_is_better else 1
    order = sorted(logs, key=lambda place: (sign * math.fsum(logs[place].values()) / len(logs[place]), place))
    step = step_of([value for arm in arms for value in arm.values()])
    changes = {(a, b): _change(logs[a], logs[b], design, step) for a, b in combinations(order, 2)}
    known = [pair for pair, (change, n) in changes.items() if change is not None and n >= MIN_FOR_VERDICT]
    p_values = [change.p_value() for pair in known if (change := changes[pair][0]) is not None]
    adjusted = dict(zip(known, holm(p_values).adjusted_p, strict=True))
    found = [Ranked(place, len(logs[place]), 0.0, None, None, False) for place in order[:1]]
    for place in order[1:]:
        change, n = changes[order[0], place]
        p = adjusted.get((order[0], place))
        apart = math.fsum(logs[place].values()) / len(logs[place]) - math.fsum(logs[order[0]].values()) / len(
            logs[order[0]]
        )
        found.append(
            Ranked(
                place,
                n,
                100 * math.expm1(change.estimate if change else apart),
                _pct(change.interval(0.95)) if change else None,
                p,
                None if p is None else p <= alpha,
            )
        )
    return tuple(found)


def _change(a: Mapping[int, float], b: Mapping[int, float], design: Arms, step: float) -> tuple[LogChange | None, int]:
    """The change from a to b, None below three repetitions, and of how many repetitions it is."""
    if design == "blocked":
        blocks = sorted(a.keys() & b.keys())
        left, right = _array([a[block] for block in blocks]), _array([b[block] for block in blocks])
    else:
        left, right = _array(list(a.values())), _array(list(b.values()))
    n = min(len(left), len(right))
    return (log_change(left, right, design, step) if n >= MIN_FOR_INTERVAL else None), n


def _array(values: Sequence[float]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def _log(value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError("only positive numbers can be ranked; leave invalid runs out")
    return math.log(value)


def _pct(interval: Interval) -> Interval:
    return 100 * math.expm1(interval[0]), 100 * math.expm1(interval[1])
