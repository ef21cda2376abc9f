"""When to stop: looks at the data that together keep the promised chance of a false alarm, and stopping by precision.

Everything here is a function of the repetitions alone, so it can be worked out again at any time with the same answer.
Why these numbers: docs/verdicts.md; how they hold: bench/simulations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.analysis.distributions import student_quantiles
from experiments.analysis.limits import ALPHA, MIN_FOR_VERDICT
from experiments.analysis.verdict import Verdict, gate_of, judge

StopKind = Literal["fixed", "until_clear", "until_not_worse", "until_precise"]
LOOKING: tuple[StopKind, ...] = ("until_clear", "until_not_worse")
"""They look after the blocks of LOOKS; the second is content with a candidate that is not worse beyond the margin."""

LOOKS = (5, 8, 12, 20)
LOOK_ALPHA = 0.016
"""Four looks at 0.016 each raise a false alarm in 4.95 % of cases; at 0.05 each it would be 13.7 %."""

MIN_FOR_PRECISION = 8
NEWEST_LOOKS = 6
AFTER_PRECISE = 2
"""Blocks after the interval is narrow enough: it is narrow by luck, too, and two more blocks even that out."""


@dataclass(frozen=True)
class StopRule:
    """`max_blocks` caps the blocks of a pair; `target_ratio` is the half-width of the 95 % interval to reach.

    `comparisons`: how many pairs and metrics decide together.
    """

    kind: StopKind = "fixed"
    max_blocks: int = LOOKS[-1]
    target_ratio: float | None = None
    comparisons: int = 1

    @property
    def alpha(self) -> float:
        """What a single verdict may spend. Several comparisons that decide together share what a look may spend."""
        return LOOK_ALPHA / self.comparisons if self.kind in LOOKING else ALPHA

    @property
    def family_alpha(self) -> float:
        """What all comparisons that decide may spend together at one look."""
        return LOOK_ALPHA if self.kind in LOOKING else ALPHA

    @property
    def looks(self) -> tuple[int, ...]:
        """The blocks after which it is planned to look; a cap between two of them is the last look."""
        if self.kind in LOOKING:
            return (*(look for look in LOOKS if look < self.max_blocks), self.max_blocks)
        if self.kind == "until_precise":
            return tuple(range(min(MIN_FOR_PRECISION, self.max_blocks), self.max_blocks + 1))
        return ()

    def settles(self, verdict: Verdict) -> bool:
        """Whether this verdict at a look ends it."""
        return gate_of(verdict.outcome) != "neutral" or (self.kind == "until_not_worse" and verdict.not_worse)


@dataclass(frozen=True)
class Look:
    """One look at a pair after this many complete blocks. `planned` False: blocks were added by hand."""

    number: int
    blocks: int
    verdict: Verdict
    half_width_ratio: float | None
    planned: bool = True


@dataclass(frozen=True)
class Standing:
    """Where a pair stands: the verdict that holds, the newest looks, and the complete blocks that the next step needs.

    `next_blocks` is None when the pair is settled: it needs no further block.
    """

    verdict: Verdict
    looks: tuple[Look, ...]
    blocks: int
    next_blocks: int | None

    @property
    def settled(self) -> bool:
        return self.next_blocks is None

    @property
    def urgency(self) -> float:
        """Half-width of the interval in margins: where further blocks decide most. Unknown counts as the widest."""
        half = half_width_ratio(self.verdict)
        return math.inf if half is None else math.log1p(half) / math.log1p(self.verdict.margin_ratio)


@dataclass(frozen=True)
class _Pair:
    """The complete blocks of two arms."""

    values: tuple[tuple[float, float], ...]
    rule: StopRule
    higher_is_better: bool
    margin_ratio: float

    def judged(self, blocks: int) -> Verdict:
        """The verdict on the first so many blocks."""
        return judge(
            [a for a, _ in self.values[:blocks]],
            [b for _, b in self.values[:blocks]],
            higher_is_better=self.higher_is_better,
            margin_ratio=self.margin_ratio,
            alpha=self.rule.alpha,
            design="blocked",
        )


def standing_of(
    rule: StopRule,
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    higher_is_better: bool,
    margin_ratio: float,
    spent: bool = False,
) -> Standing:
    """Judge two arms in block order by the stop rule. `spent`: no block will follow, so look at what there is.

    Between two looks the verdict is that of the last one: data that are not looked at cannot raise a false alarm.
    """
    values = tuple((x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None)
    pair = _Pair(values, rule, higher_is_better, margin_ratio)
    if rule.kind in LOOKING:
        return _until_clear(pair, spent=spent)
    if rule.kind == "until_precise":
        return _until_precise(pair)
    return Standing(pair.judged(len(values)), (), len(values), None)


def _until_clear(pair: _Pair, *, spent: bool) -> Standing:
    have = len(pair.values)
    looks: list[Look] = []
    for planned in pair.rule.looks:
        if planned > have:
            break
        verdict = pair.judged(planned)
        looks.append(Look(len(looks) + 1, planned, verdict, half_width_ratio(verdict)))
        if pair.rule.settles(verdict):
            return Standing(verdict, tuple(looks), have, None)
    looked_at = looks[-1].blocks if looks else 0
    if spent and have > looked_at and have >= MIN_FOR_VERDICT:
        verdict = pair.judged(have)
        planned_still = len(looks) < len(pair.rule.looks)
        looks.append(Look(len(looks) + 1, have, verdict, half_width_ratio(verdict), planned_still))
    verdict = looks[-1].verdict if looks else pair.judged(have)
    if looks and pair.rule.settles(verdict):
        return Standing(verdict, tuple(looks), have, None)
    following = next((look for look in pair.rule.looks if look > have), None)
    return Standing(verdict, tuple(looks), have, following or have + 1)


def _until_precise(pair: _Pair) -> Standing:
    have = len(pair.values)
    target = pair.rule.target_ratio or pair.margin_ratio / 2
    halves = _half_widths(pair.values)
    stop = next((n for n in range(MIN_FOR_PRECISION, have + 1) if halves[n - 1] <= math.log1p(target)), None)
    last = have if stop is None else stop
    # A verdict on each of them would cost more than it tells; the newest are what a page shows.
    shown = range(max(MIN_FOR_PRECISION, last - NEWEST_LOOKS + 1), last + 1)
    looks = tuple(
        Look(blocks - MIN_FOR_PRECISION + 1, blocks, pair.judged(blocks), math.expm1(halves[blocks - 1]))
        for blocks in shown
    )
    if stop is None:
        return Standing(pair.judged(have), looks, have, max(have + 1, MIN_FOR_PRECISION))
    enough = stop + AFTER_PRECISE
    return Standing(pair.judged(have), looks, have, None if have >= enough else enough)


def _half_widths(values: Sequence[tuple[float, float]]) -> list[float]:
    """Half the 95 % interval of the mean log ratio of the first n blocks, for every n; infinite for a single one."""
    if not values:
        return []
    d = np.log([b / a for a, b in values])
    n = np.arange(1, len(d) + 1)
    centred = d - d[0]  # so that the difference of the two sums below loses no digits
    squares = np.cumsum(centred**2) - np.cumsum(centred) ** 2 / n
    degrees = np.maximum(n - 1, 1)
    halves = student_quantiles(degrees, 0.975) * np.sqrt(np.maximum(squares, 0.0) / degrees / n)
    return [math.inf, *(float(half) for half in halves[1:])]


def half_width_ratio(verdict: Verdict) -> float | None:
    """Half the length of the 95 % interval, taken on logs and given as a ratio; None without an interval."""
    if verdict.ci95_pct is None:
        return None
    low, high = (math.log1p(bound / 100) for bound in verdict.ci95_pct)
    return math.expm1((high - low) / 2)
