"""The largest rate that a server sustains under a latency objective: where to try next, and when it is known. Pure.

A search is a function of its settings and of the trials so far, so it can be carried on by any process, at any time:
`decide` says from the trials which rate to try next, or that it is over. The course: docs/search.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.analysis.search_limit import Limit, limit_of

TrialResult = Literal["pass", "fail", "invalid"]
Phase = Literal["bracket", "bisect", "vote", "verify"]

DEFAULT_WIDTH_RATIO = 0.02
VOTE_WIDTHS = 6
"""Once the interval is at most this many target widths wide, noise decides single trials: both sides are tried."""
NEEDED_ON_EACH_SIDE = 2
"""Trials near the answer that passed at its lower end or above, and that failed at its upper end or below."""
MOST_INVALID = 3
"""So many trials in a row that measured nothing end the search."""
MOST_TRIALS = 30
"""After so many trials that measured something the search gives the interval that it has, unless that is too wide."""
WIDEST_RATIO = 0.5
"""A wider interval than this is no answer."""


@dataclass(frozen=True)
class SearchSettings:
    """Rates in requests/s. `width_ratio` is w: the search ends when (hi - lo) / hi is at most w.

    `step_rps` is the smallest difference that the load tool can offer; every rate is a multiple.
    """

    low_rps: float
    high_rps: float
    width_ratio: float = DEFAULT_WIDTH_RATIO
    step_rps: float = 0.0
    largest_rps: float = 1e9

    def __post_init__(self) -> None:
        if not 0 < self.low_rps < self.high_rps <= self.largest_rps:
            raise ValueError("the search starts at 0 < low < high")
        if not 0.001 <= self.width_ratio <= 0.5:
            raise ValueError("the width lies between 0.1 % and 50 %")

    @property
    def smallest_rps(self) -> float:
        return max(self.step_rps, 1.0)


@dataclass(frozen=True)
class Trial:
    """One trial that is over."""

    rate_rps: float
    result: TrialResult


@dataclass(frozen=True)
class TryRate:
    """What to try next, and what for. `low_rps` and `high_rps` are the bounds so far (None = not found yet)."""

    rate_rps: float
    phase: Phase
    low_rps: float | None
    high_rps: float | None


@dataclass(frozen=True)
class Found:
    """The answer: `low_rps` is sustained, `high_rps` is not. `trials` counts those that measured something.

    At least COVERAGE of such intervals hold the limit, when the width is at least twice the noise. `is_wider`: no more
    trials were made although the interval is wider than it was to be.
    """

    low_rps: float
    high_rps: float
    trials: int
    is_wider: bool


@dataclass(frozen=True)
class NotFound:
    """The search ended without an answer."""

    sentence: str


Decision = TryRate | Found | NotFound


@dataclass(frozen=True)
class _State:
    """The trials that measured something, in their order."""

    settings: SearchSettings
    rates: tuple[float, ...]
    passed: tuple[bool, ...]

    @property
    def passes(self) -> list[float]:
        return [rate for rate, ok in zip(self.rates, self.passed, strict=True) if ok]

    @property
    def fails(self) -> list[float]:
        return [rate for rate, ok in zip(self.rates, self.passed, strict=True) if not ok]


def expected_trials(low_rps: float, high_rps: float, width_ratio: float) -> int:
    """About how many trials a search takes when its start is a bracket and its width twice the noise."""
    halvings = math.log2(max(2.0, math.log(high_rps / low_rps) / -math.log(1 - width_ratio)))
    return math.ceil(halvings) + 13


def decide(settings: SearchSettings, trials: Sequence[Trial]) -> Decision:
    """What follows after these trials, in the order in which they were made. ValueError: a rate is not above 0."""
    if any(trial.rate_rps <= 0 for trial in trials):
        raise ValueError("a trial was made at a rate that is not above 0 requests/s")
    measured = [trial for trial in trials if trial.result != "invalid"]
    rates = tuple(trial.rate_rps for trial in measured)
    following = _following(_State(settings, rates, tuple(trial.result == "pass" for trial in measured)))
    newest = [trial.result for trial in trials[-MOST_INVALID:]]
    if isinstance(following, TryRate) and newest == ["invalid"] * MOST_INVALID:
        return NotFound(
            f"{MOST_INVALID} trials in a row at {trials[-1].rate_rps:,.0f} requests/s measured nothing that counts."
        )
    return following


def _following(state: _State) -> Decision:
    settings = state.settings
    first = _rounded(settings.low_rps, settings)
    if state.passed in ((), (False,)):  # a fail so early would send the search far down: it is tried again
        return TryRate(first, "bracket", None, first if state.fails else None)
    if state.passes and not state.fails and len(state.rates) == 1:
        return TryRate(_rounded(settings.high_rps, settings), "bracket", first, None)
    if end := _end_of_range(state):
        return end
    width = settings.width_ratio
    limit = limit_of(state.rates, state.passed, around=(settings.low_rps, settings.high_rps), width_ratio=width)
    low, high = _snapped(limit, settings)
    narrow = (high - low) / high <= width or high - low <= settings.step_rps
    # Rounded outwards, an interval around a rate that the load tool offers is never less than two of its steps.
    narrow = narrow or (limit.width_ratio <= width and high - low <= 2 * settings.step_rps)
    if narrow and (missing := _missing_side(state, low, high)):
        return TryRate(missing, "verify", low, high)
    if narrow or (len(state.rates) >= MOST_TRIALS and (high - low) / high <= WIDEST_RATIO):
        return Found(low, high, len(state.rates), is_wider=not narrow)
    if len(state.rates) >= 2 * MOST_TRIALS:
        return NotFound(f"No answer after {len(state.rates)} trials: they contradict each other too much.")
    seen = (low if state.passes else None), (high if state.fails else None)
    if None in seen:
        return TryRate(_rounded(limit.middle_rps, settings), "bracket", *seen)
    if limit.width_ratio > 1 - (1 - width) ** VOTE_WIDTHS:
        return TryRate(_rounded(limit.middle_rps, settings), "bisect", *seen)
    # Up, down, down, up: what changes from one trial to the next does not go with the side.
    side = limit.lower_third_rps if len(state.rates) % 4 in (1, 2) else limit.upper_third_rps
    return TryRate(_rounded(side, settings), "vote", *seen)


def _end_of_range(state: _State) -> NotFound | None:
    """Why there is nothing left to try: the smallest rate fails, or the largest one passes, more often than not."""
    smallest, largest = state.settings.smallest_rps, state.settings.largest_rps
    at_smallest = [ok for rate, ok in zip(state.rates, state.passed, strict=True) if rate <= smallest]
    if at_smallest.count(False) - at_smallest.count(True) >= NEEDED_ON_EACH_SIDE:
        return NotFound(f"Not even {smallest:,.0f} requests/s were sustained: there is no smaller rate to try.")
    at_largest = [ok for rate, ok in zip(state.rates, state.passed, strict=True) if rate >= largest]
    if at_largest.count(True) - at_largest.count(False) >= NEEDED_ON_EACH_SIDE:
        return NotFound(f"{largest:,.0f} requests/s were sustained, and the search may not offer more.")
    return None


def _missing_side(state: _State, low: float, high: float) -> float | None:
    """The end of the answer that too few trials near it bear out; None when both are borne out."""
    width = max(state.settings.width_ratio * high, state.settings.step_rps)
    if sum(low - width <= rate <= high for rate in state.passes) < NEEDED_ON_EACH_SIDE:
        return low
    if sum(low <= rate <= high + width for rate in state.fails) < NEEDED_ON_EACH_SIDE:
        return high
    return None


def _snapped(limit: Limit, settings: SearchSettings) -> tuple[float, float]:
    """The interval, outwards to rates that the load tool can offer."""
    step = settings.step_rps
    if not step:
        return limit.low_rps, limit.high_rps
    low = math.floor(limit.low_rps / step + 1e-9) * step
    return max(low, 0.0), math.ceil(limit.high_rps / step - 1e-9) * step


def _rounded(rate: float, settings: SearchSettings) -> float:
    step = settings.step_rps
    rounded = max(1, round(rate / step)) * step if step else rate
    return min(max(rounded, settings.smallest_rps), settings.largest_rps)
