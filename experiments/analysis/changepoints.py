"""Change points in a history: where the level of a series of runs jumped (E-divisive in windows, then t-tests).

The method is Hunter's (Fleming et al., doi 10.1145/3578244.3583719; Apache Otava): in windows that overlap by half the
energy statistic of Matteson and James (arXiv 1306.4933) proposes cuts and Student's t-test keeps them or not; then the
weakest cuts of the whole series are taken out until every one stands. A history is looked at after every run, so its
settings (`HISTORY`) learn how alike neighbouring values are and ask for more. Definitions: docs/history.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from experiments.analysis.changepoints_energy import Distances
from experiments.analysis.changepoints_jumps import Jump, Levels, any_cut_stands, autocorrelation, merge

Floats = NDArray[np.float64]

MIN_AFTER = 4
"""With fewer values behind it a jump of one long look at the end is suspected, not confirmed."""
WANDERS_ABOVE = 0.2
"""Lag-1 autocorrelation above which neighbouring runs resemble each other too much for the ordinary limit of p."""
SETTLED_AFTER = 50
"""Of a shorter history the noise is not known well: its limit of p is smaller, by the third power of its length."""
LOOK_MORE_ALIKE = 1.2
"""Values around levels that were chosen to fit them look less alike than they are: by so much, simulated."""
AHEAD = 8
"""So many windows are looked at together before each is looked at closely."""


@dataclass(frozen=True)
class Settings:
    """How to look. `strict_p` is the limit for a series that wanders; None = one limit for every series.

    `learns`: the noise of means is taken for as large as the likeness of neighbouring values makes it, and a series of
    fewer than `SETTLED_AFTER` values is held to a smaller p. `noise_floor_ratio`: the spread of one value is taken to
    be no less than that part of its level.
    `compat`: answer as Apache Otava 0.8.0, whose merge leaves a stale p on the left neighbour of what it takes out.
    """

    window: int = 50
    p: float = 1e-3
    min_magnitude_ratio: float = 0.02
    min_segment: int = MIN_AFTER
    ddof: int = 1
    strict_p: float | None = 1e-4
    compat: bool = False
    learns: bool = False
    noise_floor_ratio: float = 0.0

    @property
    def first_pass_p(self) -> float:
        """A window proposes at ten times the limit: how good a cut is shows when its neighbours are known."""
        return 10 * self.p if self.p < 0.05 else 2 * self.p if self.p < 0.5 else self.p


DEFAULT = Settings()
HISTORY = Settings(p=1.7e-4, min_segment=5, strict_p=None, learns=True)
"""For what is looked at again after every run; its false alarms are simulated in bench.simulations."""


def as_otava(window: int = 50, p: float = 1e-3, min_magnitude_ratio: float = 0.0) -> Settings:
    """The settings that give Apache Otava's answers."""
    return Settings(window, p, min_magnitude_ratio, min_segment=1, ddof=0, strict_p=None, compat=True)


@dataclass(frozen=True)
class Window:
    """What one window proposed. It depends on the values under it only, so it stays when later ones arrive."""

    start: int
    cuts: tuple[int, ...]


@dataclass(frozen=True)
class Changes:
    """The change points of a series of `length` values, and the windows from which a longer one goes on."""

    length: int
    windows: tuple[Window, ...]
    jumps: tuple[Jump, ...]
    suspected: Jump | None
    autocorrelation: float
    p_limit: float

    @property
    def indexes(self) -> list[int]:
        return [jump.index for jump in self.jumps]


def find_changes(
    values: Sequence[float] | Floats,
    settings: Settings = DEFAULT,
    *,
    known: Sequence[Window] = (),
    unchanged: int = 0,
) -> Changes:
    """Change points of `values` (one per run, oldest first, any unit); an index names the first value of the new level.

    `known` are the windows of an earlier look at a series whose first `unchanged` values were the same: those within
    them are not computed again. The answer is the same as without them.
    """
    series = np.asarray(values, dtype=np.float64)
    windows = _windows(series, settings, known, unchanged)
    cuts = sorted({cut for window in windows for cut in window.cuts})
    levels, length = Levels(series, settings.ddof, noise_floor_ratio=settings.noise_floor_ratio), len(series)
    p_limit, magnitude = settings.p, settings.min_magnitude_ratio
    jumps = merge(cuts, levels, length, p_limit, magnitude, stale_left=settings.compat)
    wander = 0.0
    if settings.strict_p is not None:
        certain = merge(cuts, levels, length, settings.strict_p, magnitude)
        wander = autocorrelation(series, [jump.index for jump in certain])
        if wander > WANDERS_ABOVE:
            jumps, p_limit = certain, settings.strict_p
    if settings.learns:
        wander = likeness(series, [jump.index for jump in jumps])
        p_limit *= min(1.0, (length / SETTLED_AFTER) ** 3)
        levels = levels.alike(wander)
        jumps = merge([jump.index for jump in jumps], levels, length, p_limit, magnitude)
    suspected = None if settings.compat else _suspected(levels, length, jumps, p_limit, settings)
    return Changes(length, tuple(windows), tuple(jumps), suspected, wander, p_limit)


def likeness(series: Floats, cuts: Sequence[int]) -> float:
    """The lag-1 autocorrelation that values around their levels have, a ratio of 0 to 0.9, as well as so many can tell.

    `series` has one value per point, oldest first, in any unit; `cuts` are the first places of new levels.
    Around k levels that were fitted to them the residuals of n values look less alike than the values are, by about
    k (1 + 3r) / n (Kendall 1954; Marriott and Pope 1954), and by more as the cuts were chosen.
    """
    if not len(series):
        return 0.0
    seen = autocorrelation(series, cuts)
    hidden = (len(cuts) + 1) * (1 + 3 * max(seen, 0.0)) / len(series)
    return min(max((seen + hidden) * LOOK_MORE_ALIKE, 0.0), 0.9)


def _windows(series: Floats, settings: Settings, known: Sequence[Window], unchanged: int) -> list[Window]:
    windows: list[Window] = []
    width, step = settings.window, settings.window // 2
    ahead, start = _Ahead(0, []), 0
    while start < len(series):
        place = len(windows)
        if place < len(known) and known[place].start == start and start + width <= unchanged:
            window = known[place]
        else:
            if not ahead.knows(start, step):
                ahead = _Ahead(start, _hopeful(series[start : start + width + (AHEAD - 1) * step], settings))
            cuts = (
                _cuts(series[start : start + width], settings) if ahead.hopeful[(start - ahead.start) // step] else []
            )
            window = Window(start, tuple(start + cut for cut in cuts))
        windows.append(window)
        start = max(window.cuts[-1] if window.cuts else 0, start + step)
    return windows


@dataclass(frozen=True)
class _Ahead:
    """Which of the windows from `start` on may have a cut, as long as none of them has one."""

    start: int
    hopeful: list[bool]

    def knows(self, start: int, step: int) -> bool:
        place, rest = divmod(start - self.start, step)
        return rest == 0 and 0 <= place < len(self.hopeful)


def _hopeful(values: Floats, settings: Settings) -> list[bool]:
    """For each window of these values, whether any cut in it can get past the t-test."""
    width = min(settings.window, len(values))
    if width < max(3, 2 * settings.min_segment):
        return [False]
    rows, stride = 1 + (len(values) - width) // (settings.window // 2), values.strides[0]
    windows = as_strided(values, (rows, width), (stride * (settings.window // 2), stride), writeable=False)
    hopeful = any_cut_stands(windows, settings.first_pass_p, settings.min_segment, settings.ddof)
    return [bool(hope) for hope in hopeful]


def _cuts(values: Floats, settings: Settings) -> list[int]:
    """Cut where Q is highest for as long as the t-test agrees, then each part in the same way."""
    least = settings.min_segment
    distances, levels = Distances(values), Levels(values, settings.ddof)
    parts = {(0, len(values)): distances.best_cut(0, len(values), least)}
    cuts: list[int] = []
    while parts:
        low, high = max(sorted(parts), key=lambda part: parts[part].q)
        cut = parts.pop((low, high)).index
        if levels.chance(low, cut, high) > settings.first_pass_p:
            break
        cuts.append(cut)
        for part in ((low, cut), (cut, high)):
            if part[1] - part[0] >= max(2, 2 * least):
                parts[part] = distances.best_cut(*part, least)
    return sorted(cuts)


def _suspected(levels: Levels, length: int, jumps: Sequence[Jump], p: float, settings: Settings) -> Jump | None:
    """The most certain jump with too few values behind it, tested against the level that it would end."""
    low, least = jumps[-1].index if jumps else 0, max(settings.min_segment, MIN_AFTER)
    last = [levels.jump(low, cut, length) for cut in range(max(low + least, length - least + 1), length)]
    found = [jump for jump in last if jump.p < p and jump.magnitude_ratio > settings.min_magnitude_ratio]
    return min(found, key=lambda jump: jump.p, default=None)
