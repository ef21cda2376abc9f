"""The verdict on two variants: whether the candidate differs from the baseline, by how much, and how sure that is.

Welch's t-test, or the paired one, on logarithms; definitions and sources: docs/verdicts.md.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.bootstrap import bca_of_pairs, bca_of_two_samples
from experiments.analysis.distributions import chi_squared_quantile, student_quantile, student_share
from experiments.analysis.limits import (
    ALPHA,
    MARGIN_RATIO,
    MIN_FOR_BOOTSTRAP,
    MIN_FOR_INTERVAL,
    MIN_FOR_VERDICT,
    MOST_REPETITIONS,
)
from experiments.analysis.ranks import Shift, p_of_pairs, p_of_two_samples, shift_of_pairs, shift_of_two_samples
from experiments.analysis.resolution import rounding_of_mean, step_of

Outcome = Literal[
    "invalid",
    "no_practical_difference",
    "better",
    "worse",
    "better_size_uncertain",
    "worse_size_uncertain",
    "inconclusive",
]
Design = Literal["independent", "blocked", "sessions"]
Arms = Literal["independent", "blocked"]
GateResult = Literal["pass", "fail", "neutral"]
Interval = tuple[float, float]

# Logs of equal numbers may differ in the last bits once they are averaged; a change below this is rounding.
ROUNDING = 1e-12
UNSURE_SHARE = 0.2
"""The chance that the noise is larger than the advice to run more repetitions takes it to be."""


def gate_of(outcome: str) -> GateResult:
    """What a gate makes of a verdict: only a proven loss fails; too little data is neutral, for a policy to decide."""
    if outcome in ("worse", "worse_size_uncertain"):
        return "fail"
    return "neutral" if outcome in ("invalid", "inconclusive") else "pass"


def not_worse(deciding_pct: Interval | None, margin_ratio: float, higher_is_better: bool) -> bool:
    """Whether this interval, in percent of the baseline, leaves out a loss beyond the margin."""
    if deciding_pct is None:
        return False
    if higher_is_better:
        return deciding_pct[0] >= _pct(-math.log1p(margin_ratio))
    return deciding_pct[1] <= 100 * margin_ratio


@dataclass(frozen=True)
class Verdict:
    """What the repetitions say. Changes are candidate against baseline, in percent of the baseline.

    None = cannot be said from so few repetitions. `n_a` and `n_b` count valid repetitions (for a blocked design:
    complete pairs; against sessions: sessions, and runs of the candidate). `needed_per_arm` is the total that would
    settle an inconclusive comparison if the noise were just what it seems, `advised_per_arm` that which settles most,
    for few repetitions know their noise badly. `cov_pct` is the noise from repetition to repetition; `p_value` is for
    corrections over many comparisons, not for the outcome.

    The outcome rests on `deciding_pct`, the interval of confidence 1 - `alpha`: that is `ci95_pct` unless the data are
    looked at several times. `outlier_sensitive`: the exact rank test disagrees about 0. `bca_ci95_pct` is a further
    opinion from 20 repetitions on. `rounding_pct` is the part of each interval, to either side, that the steps of the
    printed values make; no number of repetitions takes it away.
    """

    outcome: Outcome
    estimate_pct: float | None
    ci95_pct: Interval | None
    ci90_pct: Interval | None
    n_a: int
    n_b: int
    hodges_lehmann_pct: float | None
    hodges_lehmann_ci95_pct: Interval | None
    rank_p_value: float | None
    bca_ci95_pct: Interval | None
    outlier_sensitive: bool
    detectable_but_small: bool
    needed_per_arm: int | None
    advised_per_arm: int | None
    cov_pct: float | None
    p_value: float | None
    alpha: float
    deciding_pct: Interval | None
    margin_ratio: float
    higher_is_better: bool
    design: Design
    rounding_pct: float = 0.0

    @property
    def more_per_arm(self) -> int | None:
        """Repetitions still to run in each arm, at least, to settle an inconclusive comparison."""
        return None if self.advised_per_arm is None else self.advised_per_arm - min(self.n_a, self.n_b)

    @property
    def not_worse(self) -> bool:
        """Whether the deciding interval leaves out a loss beyond the margin, however much better it may be."""
        return min(self.n_a, self.n_b) >= MIN_FOR_VERDICT and not_worse(
            self.deciding_pct, self.margin_ratio, self.higher_is_better
        )

    @property
    def gate(self) -> GateResult:
        return gate_of(self.outcome)


@dataclass(frozen=True)
class LogChange:
    """The change of the mean log: its estimate, standard error, degrees of freedom and noise of one repetition.

    `rounding` is by how much the steps of the values may shift it, whatever the number of repetitions.
    """

    estimate: float
    standard_error: float
    degrees: float
    noise: float
    rounding: float = 0.0

    def interval(self, confidence_ratio: float) -> Interval:
        half = student_quantile(self.degrees, (1 + confidence_ratio) / 2) * self.standard_error + self.rounding
        return self.estimate - half, self.estimate + half

    def p_value(self) -> float:
        sure = max(0.0, abs(self.estimate) - self.rounding)
        if self.standard_error <= ROUNDING:
            return 1.0 if sure <= ROUNDING else 0.0
        return 2 * student_share(self.degrees, -sure / self.standard_error)


def judge(
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    higher_is_better: bool,
    margin_ratio: float = MARGIN_RATIO,
    alpha: float = ALPHA,
    design: Arms,
) -> Verdict:
    """Compare one value per repetition of baseline `a` and candidate `b`; None stands for an invalid repetition.

    `blocked` takes the two lists in block order and drops a block when either side is None. Values are compared as
    logs, so the change is a ratio of geometric means. `alpha` is the chance of a false alarm that this one look at the
    data may spend. ValueError: a value is not a positive number, the lists of a blocked design differ in length, or the
    margin or alpha make no sense.
    """
    if not 0 < margin_ratio < math.inf:
        raise ValueError(f"margin_ratio must be positive, for example 0.03 for 3 %; got {margin_ratio}")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, for example 0.05; got {alpha}")
    log_a, log_b = _logs("baseline", a), _logs("candidate", b)
    if design == "blocked":
        if len(log_a) != len(log_b):
            raise ValueError(f"a blocked design needs one value per block on both sides: {len(log_a)} and {len(log_b)}")
        complete = ~(np.isnan(log_a) | np.isnan(log_b))
        log_a, log_b = log_a[complete], log_b[complete]
    else:
        log_a, log_b = log_a[~np.isnan(log_a)], log_b[~np.isnan(log_b)]

    n = min(len(log_a), len(log_b))
    step = step_of([value for value in (*a, *b) if value is not None])
    change = log_change(log_a, log_b, design, step) if n >= MIN_FOR_INTERVAL else None
    found = verdict_of(
        change,
        estimate=float(log_b.mean() - log_a.mean()) if n else None,
        n_a=len(log_a),
        n_b=len(log_b),
        n=n,
        higher_is_better=higher_is_better,
        margin_ratio=margin_ratio,
        alpha=alpha,
        design=design,
    )
    shift = None if n < MIN_FOR_INTERVAL else _shift(log_a, log_b, design)
    rank_ci95 = shift.interval if shift else None
    rank_p = _rank_p(log_a, log_b, design) if rank_ci95 else None
    unrounded = replace(change, rounding=0.0).interval(0.95) if change else None
    margin = math.log1p(margin_ratio)
    unclear = change if found.outcome == "inconclusive" else None
    return replace(
        found,
        hodges_lehmann_pct=_pct(shift.estimate) if shift else None,
        hodges_lehmann_ci95_pct=_pct_interval(rank_ci95),
        rank_p_value=rank_p,
        bca_ci95_pct=_pct_interval(_bca(log_a, log_b, design) if n >= MIN_FOR_BOOTSTRAP else None),
        outlier_sensitive=bool(unrounded and rank_p is not None and _excludes_zero(unrounded) != (rank_p <= ALPHA)),
        needed_per_arm=_needed(unclear, n, margin, design) if unclear else None,
        advised_per_arm=_advised(unclear, n, margin, design) if unclear else None,
    )


def verdict_of(
    change: LogChange | None,
    *,
    estimate: float | None,
    n_a: int,
    n_b: int,
    n: int,
    higher_is_better: bool,
    margin_ratio: float,
    alpha: float,
    design: Design,
) -> Verdict:
    """What a change of the mean log and its standard error come to, without the opinions that need the figures.

    `n` is the number of repetitions by which it is too early or not; `estimate` is a log ratio.
    """
    ci95 = change.interval(0.95) if change else None
    ci90 = change.interval(0.90) if change else None
    deciding = change.interval(1 - alpha) if change else None
    outcome: Outcome = "invalid"
    if n >= MIN_FOR_VERDICT and change and deciding:
        margin = math.log1p(margin_ratio)
        outcome = _decide(change.estimate, deciding, change.interval(1 - 2 * alpha), margin, higher_is_better)
    return Verdict(
        outcome=outcome,
        estimate_pct=None if estimate is None else _pct(estimate),
        ci95_pct=_pct_interval(ci95),
        ci90_pct=_pct_interval(ci90),
        n_a=n_a,
        n_b=n_b,
        hodges_lehmann_pct=None,
        hodges_lehmann_ci95_pct=None,
        rank_p_value=None,
        bca_ci95_pct=None,
        outlier_sensitive=False,
        detectable_but_small=bool(outcome == "no_practical_difference" and deciding and _excludes_zero(deciding)),
        needed_per_arm=None,
        advised_per_arm=None,
        cov_pct=100 * math.sqrt(math.expm1(change.noise**2)) if change else None,
        p_value=change.p_value() if change else None,
        alpha=alpha,
        deciding_pct=_pct_interval(deciding),
        margin_ratio=margin_ratio,
        higher_is_better=higher_is_better,
        design=design,
        rounding_pct=_pct(change.rounding) if change else 0.0,
    )


def _decide(
    estimate: float, deciding: Interval, equivalence: Interval, margin: float, higher_is_better: bool
) -> Outcome:
    """The first rule that matches. Equivalence comes first: a proven change inside the margin is no difference.

    `equivalence` has the confidence 1 - 2 alpha: inside the margin, it is two one-sided tests at alpha.
    """
    if -margin <= equivalence[0] and equivalence[1] <= margin:
        return "no_practical_difference"
    if not _excludes_zero(deciding):
        return "inconclusive"
    nearest = min(abs(deciding[0]), abs(deciding[1]))
    if (estimate > 0) == higher_is_better:
        return "better" if nearest >= margin else "better_size_uncertain"
    return "worse" if nearest >= margin else "worse_size_uncertain"


def log_change(log_a: NDArray[np.float64], log_b: NDArray[np.float64], design: Arms, step: float) -> LogChange:
    """The change of the mean log from `a` to `b`.

    `log_a` and `log_b` are logs of figures of one unit, one per repetition, two or more each; `blocked`: in block
    order, as many of both. `step` is that in which the figures themselves were printed, in their unit.
    Source: docs/verdicts.md.
    """
    return change_of_means(log_a, log_b, design, rounding=_rounding(log_a, log_b, step))


def change_of_means(
    a: NDArray[np.float64], b: NDArray[np.float64], design: Arms, *, rounding: float = 0.0
) -> LogChange:
    """Welch's t for independent arms, the paired t for blocks. Written out because zero variance must not warn.

    `a` and `b` have one value for each repetition, two or more, logs or figures that are added up; everything that
    comes back is in their unit, as is `rounding`, by how much the steps of the values may shift the change.
    """
    if design == "blocked":
        differences = b - a
        deviation = float(differences.std(ddof=1))
        n = len(differences)
        # Two repetitions make one difference, so one repetition has 1/sqrt(2) of its noise.
        return LogChange(float(differences.mean()), deviation / math.sqrt(n), n - 1, deviation / math.sqrt(2), rounding)
    n_a, n_b = len(a), len(b)
    var_a, var_b = float(a.var(ddof=1)), float(b.var(ddof=1))
    share_a, share_b = var_a / n_a, var_b / n_b
    squared = share_a + share_b
    pooled = math.sqrt(((n_a - 1) * var_a + (n_b - 1) * var_b) / (n_a + n_b - 2))
    if math.sqrt(squared) <= ROUNDING:
        degrees = float(n_a + n_b - 2)
    else:
        degrees = squared**2 / (share_a**2 / (n_a - 1) + share_b**2 / (n_b - 1))
    return LogChange(float(b.mean() - a.mean()), math.sqrt(squared), degrees, pooled, rounding)


def _rounding(log_a: NDArray[np.float64], log_b: NDArray[np.float64], step: float) -> float:
    """By how much the log of the ratio may be off because the values were printed in steps."""
    return sum(-math.log1p(-min(0.9, rounding_of_mean(np.exp(logs), step))) for logs in (log_a, log_b))


def _shift(log_a: NDArray[np.float64], log_b: NDArray[np.float64], design: Arms) -> Shift:
    if design == "blocked":
        return shift_of_pairs([float(d) for d in log_b - log_a])
    return shift_of_two_samples([float(x) for x in log_a], [float(x) for x in log_b])


def _rank_p(log_a: NDArray[np.float64], log_b: NDArray[np.float64], design: Arms) -> float:
    """Rounded first: two changes that differ in the last bits only are one value to a rank test."""
    if design == "blocked":
        return p_of_pairs(np.round(log_b - log_a, 12))
    return p_of_two_samples(np.round(log_a, 12), np.round(log_b, 12))


def _bca(log_a: NDArray[np.float64], log_b: NDArray[np.float64], design: Arms) -> Interval:
    return bca_of_pairs(log_b - log_a) if design == "blocked" else bca_of_two_samples(log_a, log_b)


def _needed(change: LogChange, n_now: int, margin: float, design: Arms) -> int | None:
    """The total that would settle it, more than there are now; None when it takes too many, or none would."""
    if 2 * change.rounding >= margin:
        return None
    needed = needed_per_arm(change.noise, margin, design)
    return None if needed is None else max(needed, n_now + 1)


def _advised(change: LogChange, n_now: int, margin: float, design: Arms) -> int | None:
    """As needed, with the noise that is not exceeded in four of five cases where so many repetitions look like this."""
    unsure = math.sqrt(change.degrees / chi_squared_quantile(change.degrees, UNSURE_SHARE))
    return _needed(replace(change, noise=change.noise * unsure), n_now, margin, design)


def needed_per_arm(noise: float, margin: float, design: Arms) -> int | None:
    """Repetitions per arm that bring the 95 % half-width down to half the margin; None when it takes over 5,000.

    `noise` is the standard deviation of the log of one repetition, `margin` the log of 1 + margin_ratio.
    """

    def enough(n: int) -> bool:
        degrees = n - 1 if design == "blocked" else 2 * n - 2
        return student_quantile(degrees, 0.975) * noise * math.sqrt(2 / n) <= margin / 2

    # The half-width falls with n, so the first n that is enough is found by halving.
    n = bisect.bisect_left(range(2, MOST_REPETITIONS + 1), True, key=enough) + 2
    return n if n <= MOST_REPETITIONS else None


def _logs(side: str, values: Sequence[float | None]) -> NDArray[np.float64]:
    """Natural logs, NaN where a repetition is None."""
    for position, value in enumerate(values, start=1):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(
                f"repetition {position} of the {side} is {value}; only positive numbers can be compared, "
                "give None for an invalid repetition"
            )
    return np.array([math.nan if value is None else math.log(value) for value in values], dtype=float)


def _excludes_zero(interval: Interval) -> bool:
    return interval[0] > ROUNDING or interval[1] < -ROUNDING


def _pct(log_ratio: float) -> float:
    return math.expm1(log_ratio) * 100


def _pct_interval(interval: Interval | None) -> Interval | None:
    return None if interval is None else (_pct(interval[0]), _pct(interval[1]))
