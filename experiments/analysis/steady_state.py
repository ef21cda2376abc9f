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
from experiments.analysis.load_shape import Shape, shape_of, steps_of
from experiments.analysis.load_shape_wording import finding_of

BATCH_S = 5.0
MIN_BATCHES = 6
P_LIMIT = 0.01
DRIFT_P_LIMIT = 0.002
"""Stricter: neighbouring batches resemble each other, so a line through them looks surer than it is."""
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
    unsteady = bool(changes) or (abs(drift) >= drift_ratio and p <= DRIFT_P_LIMIT)
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


def course_shape(course: Course, window_s: float, limits: Thresholds, least_step_s: float = 0.0) -> Shape:
    """What the load over the window looked like, by the team's limits; see `experiments.analysis.load_shape`."""
    steps = steps_of(course, window_s, least_step_s)
    return shape_of(steps, shift_ratio=limits.drift_ratio / 2, dips_ratio=1.3 * limits.drift_ratio)


def load_was_steady(
    course: Course | None,
    window_s: float | None,
    limits: Thresholds,
    find: ChangeFinder = jumps,
    *,
    least_step_s: float = 0.0,
) -> Finding:
    """The finding for a run: what its load over time shows of dead time, of a warm-up, and of no steady state.

    Nothing shorter than `least_step_s` is looked at: with slow answers the load comes in bursts.
    """
    if course is None or not window_s:
        why = (
            "there is no series of the load over time: the tool records none, and no network card of the SUT carried it"
        )
        return skipped(CHECK, why, SOURCE)
    shaped = finding_of(course_shape(course, window_s, limits, least_step_s), course, window_s, limits)
    if shaped is not None:
        return shaped
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
        return Finding(CHECK, "warn", _unsteady(seen, course, limits, evidence), evidence, SOURCE)
    return Finding(CHECK, "ok", _steady(seen, course, window_s, limits), evidence, SOURCE)


def _unsteady(seen: SteadyState, course: Course, limits: Thresholds, evidence: dict[str, float | str]) -> str:
    what = []
    if seen.changes:
        evidence["changes_s"] = ", ".join(f"{index * BATCH_S:.0f}" for index in seen.changes)
        what.append(f"it jumped at {evidence['changes_s']} s")
    if abs(seen.drift_ratio) >= limits.drift_ratio and seen.drift_p <= DRIFT_P_LIMIT:
        what.append(f"it drifted by {percent(seen.drift_ratio, 1)}")
    return f"The load came to no steady state: {' and '.join(what)} ({course.source})."


def _steady(seen: SteadyState, course: Course, window_s: float, limits: Thresholds) -> str:
    begun = f"The load was steady after {seen.warm_up_batches * BATCH_S:.0f} s of {window_s:.0f} s ({course.source})"
    if abs(seen.drift_ratio) >= limits.drift_ratio:
        return f"{begun}; its noise hides a drift of less than about {percent(abs(seen.drift_ratio))}."
    return f"{begun}; it drifted by {percent(seen.drift_ratio, 1)}."
