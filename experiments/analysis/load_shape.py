"""What the course of a load looked like: dead time, another level, a slope, waves, short dips, told from noise.

The noise is learnt from the differences of neighbouring steps, which a jump, a ramp or a pause hardly touches: their
spread and how far one step foretells the next. Every stretch of the window is then compared with the rest of it (the
scan statistic of Olshen et al., Circular Binary Segmentation, doi 10.1093/biostatistics/kxh008), on a series from which
dips of up to two steps are taken out: a server that pauses for a moment all along is in its steady state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.findings import Course

Floats = NDArray[np.float64]
Kind = Literal["even", "dead", "beginning", "end", "stretch", "slope", "waves", "dips", "too_short"]

DEAD_RATIO = 0.1
"""Below this share of the active rate nothing really arrived."""
COUNT_OF_A_STEP = 20.0
"""A step is so long that this many requests are expected in it: then chance alone leaves none of them empty."""
MAX_STEPS = 1200
MIN_STEPS = 10
MANY_STEPS = 30
SIGMAS, SIGMAS_OF_FEW = 4.5, 7.0
"""How far from the rest a stretch must be, in standard errors: of MANY_STEPS, and of MIN_STEPS less known."""
LONG_STEP_S = 2.0
"""A dip lasts for up to two steps, and for one of at least this length."""
LEAST_STEPS = 3
"""The shortest stretch that is compared with the rest; what is shorter is a dip."""
MOST_CORRELATED, ENOUGH_TO_CORRELATE = 0.7, 45
"""How far one step may foretell the next, when the noise is learnt from at least so many."""
UNSEEN_EDGE_S = 3.0
"""A tool takes that long to start and to end; only a record of every request shows what it did in that time."""
WAVES = 3
"""So often the rate must cross its middle to be called waves, and not one jump and back."""
WAVES_RATIO = 0.1
"""How far apart the crests and troughs of waves must be, as a share of the mean."""
WAVES_SIGMAS = 2.2
"""How much more the rate must vary from five steps to five steps than its noise explains."""
DEEP_RATIO, DEEP_SIGMAS = 0.25, 5.0
"""A dip takes at least this share of the rate, and is further down than the noise goes up."""


@dataclass(frozen=True)
class Steps:
    """The load in equal steps: `rates` in the unit of the course, the first of them from `begin_s` of the window."""

    rates: Floats
    step_s: float
    begin_s: float = 0.0


@dataclass(frozen=True)
class Stretch:
    """A part of the window in which the rate was another one; `rate` and `rest` are in the unit of the course."""

    begin_s: float
    end_s: float
    rate: float
    rest: float

    @property
    def ratio(self) -> float:
        """By how much it differs from the rest, as a ratio: -0.5 is half of it (docs/validity.md)."""
        return self.rate / self.rest - 1 if self.rest else 0.0


@dataclass(frozen=True)
class Shape:
    """`active` is the rate while the load was on, `mean` that of the whole window, `dead_s` how long nothing arrived.

    `stretches`: of a dead course those without load, else the one that differs most from the rest. `slope_ratio` is
    the change from the begin to the end. `dips_ratio` is the share of the load that short dips took.
    """

    kind: Kind
    steps: int
    step_s: float
    mean: float = 0.0
    active: float = 0.0
    dead_s: float = 0.0
    stretches: tuple[Stretch, ...] = ()
    slope_ratio: float = 0.0
    crossings: int = 0
    dips: int = 0
    dips_ratio: float = 0.0

    @property
    def shift_ratio(self) -> float:
        """By how much, as a ratio, the stretch that differs most moves the mean of the window (docs/validity.md)."""
        one = self.stretches[0]
        return abs(one.ratio) * (one.end_s - one.begin_s) / (self.steps * self.step_s)

    @property
    def lost_ratio(self) -> float:
        """By how much, as a ratio, the mean of the window is below the active rate (docs/validity.md)."""
        return max(0.0, 1 - self.mean / self.active) if self.active else 0.0


def steps_of(course: Course, window_s: float, least_step_s: float = 0.0) -> Steps:
    """The rates of equal steps that fill the window.

    A step is at least `least_step_s` long, and long enough to hold COUNT_OF_A_STEP. Samples that speak for time
    outside of the window are left out. Where none was recorded the rate is 0 (`course.complete`), else it is what lies
    around it, and a short time without load at either end is left out. The rule: docs/validity.md.
    """
    step_s = course.step_s or usual_step(course.at_s)
    at_s, values = np.asarray(course.at_s, dtype=np.float64), np.asarray(course.values, dtype=np.float64)
    inside = (at_s - step_s / 2 >= -0.25 * step_s) & (at_s + step_s / 2 <= window_s + 0.25 * step_s)
    count = int(window_s // step_s) if step_s > 0 else 0
    if count < 1 or not inside.any():
        return Steps(np.zeros(0), step_s)
    at_s, values = at_s[inside], values[inside]
    first = at_s[0] % step_s  # where the samples lie in their steps
    begin_s = first - step_s / 2 if first >= step_s / 4 else first + step_s / 2
    count = min(count, max(1, int((window_s - begin_s + 0.25 * step_s) // step_s)))
    places = np.clip(np.floor((at_s - begin_s) / step_s).astype(int), 0, count - 1)
    sums, found = np.bincount(places, values, count), np.bincount(places, minlength=count)
    rates = np.divide(sums, found, out=np.full(count, np.nan), where=found > 0)
    if course.complete:
        rates = np.nan_to_num(rates, nan=0.0)
    elif np.isnan(rates).any():
        known = np.flatnonzero(~np.isnan(rates))
        rates = np.interp(np.arange(count), known, rates[known])
    expected = _active(rates) * step_s
    each = max(1, math.ceil(COUNT_OF_A_STEP / expected) if expected > 0 else 1, math.ceil(count / MAX_STEPS))
    each = max(each, math.ceil(least_step_s / step_s))
    if not course.complete:
        first, last = _between_dead_edges(rates, round(UNSEEN_EDGE_S / step_s))
        rates, begin_s = rates[first:last], begin_s + first * step_s
    whole = len(rates) // each * each
    return Steps(rates[:whole].reshape(-1, each).mean(axis=1), step_s * each, begin_s)


def shape_of(steps: Steps, *, shift_ratio: float, dips_ratio: float) -> Shape:
    """What the rates of equal steps look like.

    `shift_ratio`: how far a stretch must move the mean of the window to matter; `dips_ratio`: how much of the load
    short dips must take. The rule: docs/validity.md.
    """
    rates, n = steps.rates, len(steps.rates)
    mean = float(rates.mean()) if n else 0.0
    if n < MIN_STEPS or mean <= 0:
        return Shape("too_short", n, steps.step_s, mean)
    dead = rates < DEAD_RATIO * _active(rates)
    if dead.any():
        return _with_dead_time(steps, dead, shift_ratio, dips_ratio)
    smooth = _without_dips(rates, steps.step_s)
    active = _active(smooth)
    dips, taken = _dips(rates, smooth)
    even = Shape("even", n, steps.step_s, mean, active, dips=dips, dips_ratio=taken)
    if (crossings := _waves(rates, smooth)) >= WAVES:
        return replace(even, kind="waves", crossings=crossings)
    found = _most_different(smooth, _noise(rates), shift_ratio)
    if found is None:
        return replace(even, kind="dips") if taken >= dips_ratio else even
    begin, end = found
    rest = np.concatenate([smooth[:begin], smooth[end:]])
    stretch = _stretch(steps, begin, end, float(smooth[begin:end].mean()), float(rest.mean()))
    slope, sloping = _slope(smooth, begin, end)
    kind: Kind = "slope" if sloping else "beginning" if begin == 0 else "end" if end == n else "stretch"
    return replace(even, kind=kind, stretches=(stretch,), slope_ratio=slope)


def _with_dead_time(steps: Steps, dead: NDArray[np.bool_], shift_ratio: float, dips_ratio: float) -> Shape:
    """The shape of a course that was dead for a while; one that rose from nothing, or fell to it, is a slope."""
    rates = steps.rates
    alive = replace(steps, rates=rates[~dead])
    rest = shape_of(alive, shift_ratio=shift_ratio, dips_ratio=dips_ratio)
    active = rest.active or float(np.median(alive.rates))
    stretches = tuple(_stretch(steps, begin, end, float(rates[begin:end].mean()), active) for begin, end in _runs(dead))
    return Shape(
        "slope" if rest.kind == "slope" else "dead",
        len(rates),
        steps.step_s,
        float(rates.mean()),
        active,
        float(dead.sum()) * steps.step_s,
        stretches,
        float(np.sign(rest.slope_ratio)) if rest.kind == "slope" else 0.0,
    )


def _stretch(steps: Steps, begin: int, end: int, rate: float, rest: float) -> Stretch:
    return Stretch(steps.begin_s + begin * steps.step_s, steps.begin_s + end * steps.step_s, rate, rest)


def usual_step(at_s: Sequence[float]) -> float:
    """How far apart, in seconds, samples usually are (docs/validity.md); 0 for fewer than two of them."""
    return float(np.median(np.diff(np.asarray(at_s, dtype=np.float64)))) if len(at_s) > 1 else 0.0


def _between_dead_edges(rates: Floats, most: int) -> tuple[int, int]:
    """The steps without those at both ends in which nothing arrived, unless there are more than `most` of them.

    The first one with load is left out as well: the tool began somewhere in it.
    """
    at = np.flatnonzero(rates >= DEAD_RATIO * _active(rates))
    first = int(at[0]) + 1 if at[0] <= most else 0
    return first, int(at[-1]) + 1 if len(rates) - 1 - at[-1] <= most else len(rates)


def _active(rates: Floats) -> float:
    """The rate while the load was on: of the steps that are not empty beside the busiest ones, the upper quarter."""
    high = max(float(np.quantile(rates, 0.95)), float(rates.mean())) if len(rates) else 0.0
    return float(np.quantile(rates[rates >= DEAD_RATIO * high], 0.75)) if high > 0 else 0.0


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _without_dips(rates: Floats, step_s: float) -> Floats:
    """The running median of five steps, of three long ones: what is as short as a dip is gone, what is longer stays."""
    width = 3 if step_s >= LONG_STEP_S else 5
    padded = np.pad(rates, width // 2, mode="reflect")
    found: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return found


def _noise(rates: Floats) -> float:
    """The standard deviation that the mean of a long stretch has, times the root of its steps.

    From differences of neighbours: for noise whose neighbours have the correlation r their variance is 2 (1 - r) times
    its own, and they correlate by -(1 - r) / 2; a stretch's mean then varies (1 + r) / (1 - r) times as much. The same
    of means of five steps, where the window has enough of them, guards against noise of another kind.
    """
    found = [_from_differences(rates)]
    for each in (3, 5):
        if len(rates) >= 10 * each:
            means = rates[: len(rates) // each * each].reshape(-1, each).mean(axis=1)
            found.append(_spread(np.diff(means)) / math.sqrt(2) * math.sqrt(each))
    return max(found)


def _from_differences(rates: Floats) -> float:
    steps = np.diff(rates)
    middle, spread = float(np.median(steps)), _spread(steps)
    if spread == 0:
        return 0.0
    calm = steps - middle
    calm[np.abs(calm) > 3.5 * spread] = 0.0  # a jump is no noise
    together = float(np.dot(calm[1:], calm[:-1]) / np.dot(calm, calm))
    most = MOST_CORRELATED * min(1.0, len(rates) / ENOUGH_TO_CORRELATE)  # of few steps chance alone makes it large
    r = min(most, max(0.0, 1 + 2 * together))
    return spread * math.sqrt((1 + r) / 2) / (1 - r)


def _spread(values: Floats) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _most_different(smooth: Floats, noise: float, shift_ratio: float) -> tuple[int, int] | None:
    """The stretch that differs most from the rest, in standard errors; None when none does by enough to matter."""
    n = len(smooth)
    sums = np.concatenate([[0.0], np.cumsum(smooth)])
    few = max(0.0, (MANY_STEPS - n) / (MANY_STEPS - MIN_STEPS))
    needed = SIGMAS + few * (SIGMAS_OF_FEW - SIGMAS)
    best, found = needed, None
    for length in range(LEAST_STEPS, n // 2 + 1):
        inside = (sums[length:] - sums[:-length]) / length
        outside = (sums[n] - inside * length) / (n - length)
        shift = np.abs(sums[n] / n - outside) / np.where(outside > 0, outside, np.inf)
        z = np.abs(inside - outside) / max(noise * math.sqrt(1 / length + 1 / (n - length)), 1e-12 * sums[n] / n)
        z[shift < shift_ratio] = 0.0
        if z.max() > best:
            best, begin = float(z.max()), int(z.argmax())
            found = (begin, begin + length)
    return found


def _slope(smooth: Floats, begin: int, end: int) -> tuple[float, bool]:
    """The change along the fitted line as a ratio of its greater end, and whether it fits better than two levels."""
    n = len(smooth)
    at = np.arange(n)
    line = np.polyval(np.polyfit(at, smooth, 1), at)
    levels = np.full(n, np.concatenate([smooth[:begin], smooth[end:]]).mean())
    levels[begin:end] = smooth[begin:end].mean()
    sloping = bool(np.sum((smooth - line) ** 2) < np.sum((smooth - levels) ** 2))
    top = max(line[0], line[-1])
    return float((line[-1] - line[0]) / top) if top > 0 else 0.0, sloping


def _waves(rates: Floats, smooth: Floats) -> int:
    """How often the rate went from clearly above its middle to clearly below it, or back; 0 when noise explains it."""
    low, high = (float(value) for value in np.quantile(smooth, (0.1, 0.9)))
    by_noise = _from_differences(rates) / math.sqrt(5)
    if high - low < WAVES_RATIO * float(smooth.mean()) or float(smooth.std()) < WAVES_SIGMAS * by_noise:
        return 0
    middle, apart = (low + high) / 2, (high - low) / 4
    sides = np.where(smooth > middle + apart, 1, np.where(smooth < middle - apart, -1, 0))
    return int(np.count_nonzero(np.diff(sides[sides != 0])))


def _dips(rates: Floats, smooth: Floats) -> tuple[int, float]:
    """Dips of up to two steps: how many there are, and which share of the load they took.

    What is noise is told by how far the rate goes up, as dips only go down.
    """
    above = (rates - smooth)[rates > smooth]
    noise = 1.4826 * float(np.median(above)) if len(above) else 0.0
    deep = smooth - rates > max(DEEP_RATIO * float(np.median(smooth)), DEEP_SIGMAS * noise)
    return len(_runs(deep)), float((smooth - rates)[deep].sum() / smooth.sum())
