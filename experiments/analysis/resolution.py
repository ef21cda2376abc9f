"""How coarse the values of a figure are, and how far a mean of rounded values may be off.

A tool that prints whole milliseconds says 20 for everything from 19.5 to 20.5. Where repetitions vary by less than the
step, all of them are rounded the same way and no number of them helps; where they vary by more, their errors average
out. For noise of standard deviation s and steps of q the error of the mean is at most q / 2, and falls as
exp(-2 pi^2 s^2 / q^2): Widrow and Kollar, Quantization Noise, 2008, chapter 4 (the first term of the series).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FEWEST_DIGITS, MOST_DIGITS = 0, 6
"""Values are looked at with so many decimals; whole ones are steps of 1, however many zeros they end with."""


def step_of(values: Sequence[float]) -> float:
    """The step in which values are printed, in their unit: 1 for 20 and 21, 0.01 for 3.27; 0 for finer ones.

    Source: Widrow and Kollar, Quantization Noise, 2008.
    """
    for digits in range(FEWEST_DIGITS, MOST_DIGITS + 1):
        if all(math.isclose(value, round(value, digits), rel_tol=1e-12, abs_tol=1e-15) for value in values):
            return float(10.0**-digits)
    return 0.0


def rounding_of_mean(values: NDArray[np.float64], step: float) -> float:
    """By how much the mean of values that were rounded to steps may be off, as a ratio of it; 0 for fine steps.

    `values` is one per repetition, `step` of the same unit; all of them are positive. Source: Widrow and Kollar,
    Quantization Noise, 2008.
    """
    if step <= 0 or not len(values):
        return 0.0
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return step / 2 * math.exp(-2 * (math.pi * spread / step) ** 2) / float(values.mean())
