"""Whether the load was in a steady state: warm-up cut off by MSER, then no jump and no trend in what is left.

MSER is White's marginal standard error rule on batch means of 5 s. On few batches it finds a "warm-up" of half the
window in pure noise as well (9 % of simulated windows of 12 batches), so the half that it cuts off must also differ
from the other one: by Welch's t-test and by more than is of interest (then 0.4 %).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.changepoints import Settings, find_changes
from experiments.analysis.distributions import line_through, welch_p
from experiments.analysis.findings import Course, Finding, Thresholds, percent, skipped

BATCH_S = 5.0
MIN_BATCHES = 6
P_LIMIT = 0.01
FILLED_RATIO = 0.5
"""A batch counts when it has at least this share of the samples that a full one has."""
CHECK = "steady_state"
SOURCE = "White's MSER; Barrett et al., arXiv 1602.00602: at most 43.5 % of VM and benchmark pairs reach a steady peak"

Floats = NDArray[np.float64]
ChangeFinder = Callable[[Sequence[float], float], Sequence[int]]
"""Gives the indexes at which a series jumps to another level by more than the ratio."""
Verdict = Literal["steady", "warming_up", "unsteady", "too_short"]


@dataclass(frozen=True)
class SteadyState:
    """`warm_up_batches` were cut off; `mean`, `changes` and `drift_ratio` are of the rest.

    `changes` are indexes into all batches. `drift_ratio` is the trend over the whole rest, `drift_p` its p-value.
    """

    verdict: Verdict
    batches: int
    warm_up_batches: int
    mean: float
    changes: tuple[int, ...] = ()
    drift_ratio: float = 0.0
    drift_p: float = 1.0

    @property
    def ok(self) -> bool:
        return self.verdict == "steady"


def jumps(values: Sequence[float], min_magnitude_ratio: float) -> list[int]:
    """The change points of batch means (the values, of any unit), found as those of a history."""
    return find_changes(values, Settings(min_magnitude_ratio=min_magnitude_ratio)).indexes


def batch_means(at_s: Sequence[float], values: Sequence[float], window_s: float) -> list[float]:
    """The means of whole batches of the window, in the values' unit; one with less than half its samples is left out.

    `values` are the samples, one for each time of `at_s`, both from the window's begin.
    """
    count = int(window_s // BATCH_S)
    times, found = np.asarray(at_s, dtype=np.float64), np.asarray(values, dtype=np.float64)
    sizes = [np.count_nonzero((times >= i * BATCH_S) & (times < (i + 1) * BATCH_S)) for i in range(count)]
    full = max(sizes, default=0)
    return [
        float(found[(times >= i * BATCH_S) & (times < (i + 1) * BATCH_S)].mean())
        for i, size in enumerate(sizes)
        if size and size >= FILLED_RATIO * full
    ]


def warm_up_of(batches: Sequence[float]) -> int:
    """MSER: how many of the first batches to leave out so that the standard error of the mean is least."""
    z = np.asarray(batches, dtype=np.float64)
    m = len(z)
    errors = [float(np.sum((z[d:] - z[d:].mean()) ** 2)) / (m - d) ** 2 for d in range(m // 2 + 1)]
    return int(np.argmin(errors))


def examine(
    batches: Sequence[float],
    *,
    find: ChangeFinder = jumps,
    warm_up_ratio: float = 0.02,
    drift_ratio: float = 0.02,
) -> SteadyState:
    """Judge the means of `batches` of equal length, in time order and of any unit, all of them positive or 0."""
    z = np.asarray(batches, dtype=np.float64)
    m = len(z)
    if m < MIN_BATCHES:
        return SteadyState("too_short", m, 0, float(z.mean()) if m else 0.0)
    cut = warm_up_of(z.tolist())
    rest = z[cut:]
    mean = float(rest.mean())
    if cut >= m // 2 and _differ(z[:cut], rest, warm_up_ratio):
        return SteadyState("warming_up", m, cut, mean)
    if len(rest) < MIN_BATCHES:
        return SteadyState("too_short", m, cut, mean)
    drift, p = _drift(rest)
    changes = tuple(cut + index for index in find(rest.tolist(), drift_ratio))
    unsteady = bool(changes) or (abs(drift) >= drift_ratio and p <= P_LIMIT)
    return SteadyState("unsteady" if unsteady else "steady", m, cut, mean, changes, drift, p)


def _differ(first: Floats, rest: Floats, ratio: float) -> bool:
    """Whether two parts differ by more than `ratio` of the second, and by more than noise."""
    if abs(first.mean() - rest.mean()) < ratio * abs(rest.mean()):
        return False
    if np.ptp(first) == 0 and np.ptp(rest) == 0:
        return bool(first[0] != rest[0])
    return welch_p(first, rest) <= P_LIMIT


def _drift(values: Floats) -> tuple[float, float]:
    """The change along the fitted line from the first to the last value, as a ratio of the mean, and its p-value."""
    if np.ptp(values) == 0:
        return 0.0, 1.0
    fit = line_through(values)
    mean = float(values.mean())
    return (fit.slope * (len(values) - 1) / mean if mean else 0.0), fit.p


def load_was_steady(
    course: Course | None, window_s: float | None, limits: Thresholds, find: ChangeFinder = jumps
) -> Finding:
    """The finding for a run: invalid while it still warmed up, a warning when it never came to rest."""
    if course is None or not window_s:
        why = (
            "there is no series of the load over time: the tool records none, and no network card of the SUT carried it"
        )
        return skipped(CHECK, why, SOURCE)
    batches = batch_means(course.at_s, course.values, window_s)
    seen = examine(batches, find=find, warm_up_ratio=limits.warm_up_ratio, drift_ratio=limits.drift_ratio)
    if seen.verdict == "too_short":
        left = seen.batches - seen.warm_up_batches
        return skipped(
            CHECK,
            f"the window has {left} batch{'' if left == 1 else 'es'} of {BATCH_S:.0f} s to judge by, and "
            f"{MIN_BATCHES} are needed; measure for at least 60 s",
            SOURCE,
        )
    evidence: dict[str, float | str] = {
        "series": course.source,
        "batches": seen.batches,
        "warm_up_batches": seen.warm_up_batches,
        "mean": round(seen.mean, 3),
        "drift_ratio": round(seen.drift_ratio, 5),
        "drift_p": round(seen.drift_p, 5),
    }
    if seen.verdict == "warming_up":
        text = (
            f"The warm-up was not over: the first {seen.warm_up_batches * BATCH_S:.0f} s of {window_s:.0f} s were "
            f"still different from the rest ({course.source}). Warm up for longer."
        )
        return Finding(CHECK, "invalid", text, evidence, SOURCE)
    if seen.verdict == "unsteady":
        what = []
        if seen.changes:
            evidence["changes_s"] = ", ".join(f"{index * BATCH_S:.0f}" for index in seen.changes)
            what.append(f"it jumped at {evidence['changes_s']} s")
        if abs(seen.drift_ratio) >= limits.drift_ratio and seen.drift_p <= P_LIMIT:
            what.append(f"it drifted by {percent(seen.drift_ratio, 1)}")
        text = f"The load came to no steady state: {' and '.join(what)} ({course.source})."
        return Finding(CHECK, "warn", text, evidence, SOURCE)
    text = (
        f"The load was steady after {seen.warm_up_batches * BATCH_S:.0f} s of {window_s:.0f} s ({course.source}); "
        f"it drifted by {percent(seen.drift_ratio, 1)}."
    )
    return Finding(CHECK, "ok", text, evidence, SOURCE)
