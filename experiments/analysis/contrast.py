"""Ratios of several samples: one over another, or how the one ratio differs from the other, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.distributions import student_quantile
from experiments.analysis.limits import MIN_FOR_INTERVAL
from experiments.analysis.verdict import ROUNDING

Sample = tuple[tuple[int | None, float], ...]
"""The positive values of some repetitions, each with the block of the experiment that it belongs to."""


@dataclass(frozen=True)
class Contrast:
    """A ratio of geometric means with its 95 % interval, None below three repetitions; `n` is of the smallest sample.

    `paired`: the samples were compared block by block, which takes out what slow changes of the machines add.
    """

    ratio: float
    ci95: tuple[float, float] | None
    n: int
    paired: bool

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.ci95 is not None and not self.ci95[0] <= 1 <= self.ci95[1]


def contrast(over: Sequence[Sample], under: Sequence[Sample]) -> Contrast:
    """The geometric means of `over`, multiplied, divided by those of `under`. Every sample has a value.

    With three or more blocks that all samples have, Student's interval of the blocks' ratios; else Welch's.
    """
    signed = [(1.0, one) for one in over] + [(-1.0, one) for one in under]
    by_block = [_by_block(sample) for _, sample in signed]
    common = sorted(set.intersection(*(set(one) for one in by_block)))
    if len(common) >= MIN_FOR_INTERVAL:
        logs = np.array(
            [math.fsum(sign * one[block] for (sign, _), one in zip(signed, by_block, strict=True)) for block in common]
        )
        error = float(logs.std(ddof=1)) / math.sqrt(len(common))
        return _contrast(float(logs.mean()), error, len(common) - 1, len(common), paired=True)
    values = [np.log([value for _, value in sample]) for _, sample in signed]
    estimate = math.fsum(sign * float(logs.mean()) for (sign, _), logs in zip(signed, values, strict=True))
    n = min(map(len, values))
    if n < MIN_FOR_INTERVAL:
        return Contrast(math.exp(estimate), None, n, paired=False)
    parts = [float(logs.var(ddof=1)) / len(logs) for logs in values]
    total = math.fsum(parts)
    spread = math.fsum(part**2 / (len(logs) - 1) for part, logs in zip(parts, values, strict=True))
    degrees = total**2 / spread if spread > 0 else 1.0
    return _contrast(estimate, math.sqrt(total), degrees, n, paired=False)


def _by_block(sample: Sample) -> dict[int, float]:
    """The log of the value of each block; nothing when a repetition has no block, or a block has two."""
    logs = {block: math.log(value) for block, value in sample if block is not None}
    return logs if len(logs) == len(sample) else {}


def _contrast(estimate: float, error: float, degrees: float, n: int, *, paired: bool) -> Contrast:
    half = 0.0 if error <= ROUNDING else student_quantile(degrees, 0.975) * error
    return Contrast(math.exp(estimate), (math.exp(estimate - half), math.exp(estimate + half)), n, paired)
