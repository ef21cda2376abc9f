"""Power before the launch: how many repetitions find a change, and which change so many repetitions find.

The distribution is the noncentral t (Cohen, Statistical Power Analysis, 1988); the table: docs/verdicts.md.
"""

from __future__ import annotations

import bisect
import math

from experiments.analysis.distributions import noncentral_student_share, student_quantile
from experiments.analysis.limits import ALPHA, MOST_REPETITIONS

ENOUGH = 0.8
"""The usual power: four of five real changes of that size are found."""

_CERTAIN = 30


def power_of(n: int, delta_sd: float, *, alpha: float = ALPHA, paired: bool = False) -> float:
    """The chance that a two-sided t test of n + n repetitions finds a shift of `delta_sd` standard deviations of one.

    To find it with the wrong sign does not count. `paired`: n blocks compared pair by pair, the noise inside a block
    being that of one repetition.
    """
    degrees = n - 1 if paired else 2 * n - 2
    shift = abs(delta_sd) * math.sqrt(n / 2)
    critical = student_quantile(degrees, 1 - alpha / 2)
    if shift - critical > _CERTAIN:  # where the noncentral t gives no number any more
        return 1.0
    return 1 - noncentral_student_share(degrees, shift, critical)


def needed_to_find(
    cov_ratio: float, change_ratio: float, *, power: float = ENOUGH, alpha: float = ALPHA, paired: bool = False
) -> int | None:
    """Repetitions per arm that find this change with this power; None when it takes more than 5,000."""
    delta_sd = abs(math.log1p(change_ratio)) / _log_sd(cov_ratio)

    def enough(n: int) -> bool:
        return power_of(n, delta_sd, alpha=alpha, paired=paired) >= power

    n = bisect.bisect_left(range(2, MOST_REPETITIONS + 1), True, key=enough) + 2
    return n if n <= MOST_REPETITIONS else None


def detectable_change(
    n: int, cov_ratio: float, *, power: float = ENOUGH, alpha: float = ALPHA, paired: bool = False
) -> float:
    """The smallest increase, as a ratio, that n repetitions per arm find with this power."""
    low, high = 0.0, 100.0
    for _ in range(60):  # halving the distance 60 times leaves less than the last bit
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(n, middle, alpha=alpha, paired=paired) >= power else (middle, high)
    return math.expm1(high * _log_sd(cov_ratio))


def _log_sd(cov_ratio: float) -> float:
    """The standard deviation of the logs of values with this coefficient of variation."""
    if not 0 < cov_ratio < math.inf:
        raise ValueError(f"the noise (CoV) must be positive, for example 0.02 for 2 %; got {cov_ratio}")
    return math.sqrt(math.log1p(cov_ratio**2))
