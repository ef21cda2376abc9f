"""The largest rate that a server sustains under a latency objective: bracket, bisect, vote, verify. Pure.

A search is a function of its settings and of the trials so far, so it can be carried on by any process, at any time:
`decide` replays the trials and says which rate to try next, or that it is over. The course: docs/search.md.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Literal

TrialResult = Literal["pass", "fail", "invalid"]
Phase = Literal["bracket", "bisect", "vote", "verify"]

DEFAULT_WIDTH_RATIO = 0.02
VOTE_WIDTHS = 4
"""Once the interval is at most this many target widths wide, noise decides single trials: two of three count."""
MOST_INVALID = 3
"""So many trials in a row at one rate that measured nothing end the search."""
MOST_TRIALS = 60


@dataclass(frozen=True)
class SearchSettings:
    """Rates in requests/s. `width_ratio` is w: the search ends when (hi - lo) / hi is at most w.

    `bracketed`: it is known that `low_rps` passes and `high_rps` fails, so neither is tried. `robust`: votes and a
    final verification. `step_rps` is the smallest difference that the load tool can offer; every rate is a multiple.
    """

    low_rps: float
    high_rps: float
    width_ratio: float = DEFAULT_WIDTH_RATIO
    robust: bool = True
    bracketed: bool = False
    step_rps: float = 0.0
    largest_rps: float = 1e9

    def __post_init__(self) -> None:
        if not 0 < self.low_rps < self.high_rps <= self.largest_rps:
            raise ValueError("the search starts at 0 < low < high")
        if not 0.001 <= self.width_ratio <= 0.5:
            raise ValueError("the width lies between 0.1 % and 50 %")


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
    """The answer: `low_rps` is sustained, `high_rps` is not. `trials` counts those that measured something."""

    low_rps: float
    high_rps: float
    trials: int


@dataclass(frozen=True)
class NotFound:
    """The search ended without an answer."""

    sentence: str


Decision = TryRate | Found | NotFound
Course = Generator[TryRate, bool, Found | NotFound]


def expected_trials(low_rps: float, high_rps: float, width_ratio: float) -> int:
    """About how many trials a robust search takes when its start is a bracket: bisections, votes and verification."""
    halvings = math.log2(math.log(high_rps / low_rps) / -math.log(1 - width_ratio))
    return max(0, math.ceil(halvings)) + 6


def decide(settings: SearchSettings, trials: Sequence[Trial]) -> Decision:
    """What follows after these trials, in the order in which they were made.

    ValueError: a trial is at another rate than the one that was to be tried.
    """
    course = _course(settings)
    asked, invalid = next(course), 0
    for trial in trials:
        if not math.isclose(trial.rate_rps, asked.rate_rps, rel_tol=1e-6):
            raise ValueError(f"a trial at {trial.rate_rps:g} requests/s, where {asked.rate_rps:g} was to be tried")
        if trial.result == "invalid":
            invalid += 1
            if invalid >= MOST_INVALID:
                return NotFound(
                    f"{MOST_INVALID} trials in a row at {asked.rate_rps:,.0f} requests/s measured nothing that counts."
                )
            continue
        invalid = 0
        try:
            asked = course.send(trial.result == "pass")
        except StopIteration as end:
            over: Found | NotFound = end.value
            return over
    if len(trials) >= MOST_TRIALS:
        return NotFound(f"No answer after {MOST_TRIALS} trials: the figures are too unsteady for this width.")
    return asked


def _course(settings: SearchSettings) -> Course:
    """The search as it would be done by hand; each `yield` is one trial and gets whether it passed."""
    trials = 0
    if settings.bracketed:
        low, high = settings.low_rps, settings.high_rps
    else:
        bracket = yield from _bracket(settings)
        if isinstance(bracket, NotFound):
            return bracket
        low, high, trials = bracket
    width = settings.width_ratio
    while (high - low) / high > width:
        middle = _rounded(math.sqrt(low * high), settings)
        if not low < middle < high:
            break  # the load tool cannot offer anything in between
        if settings.robust and (high - low) / high <= VOTE_WIDTHS * width:
            passed, made = yield from _vote(middle, "vote", low, high)
        else:
            passed, made = (yield TryRate(middle, "bisect", low, high)), 1
        trials += made
        low, high = (middle, high) if passed else (low, middle)
    while settings.robust:
        passed, made = yield from _vote(low, "verify", low, high)
        trials += made
        if passed:
            break
        high = low
        low = _rounded(low * (1 - width), settings)
        if low >= high:
            low = high - settings.step_rps
        if low <= 0 or low < settings.step_rps:
            return NotFound("Even the smallest rate that the load tool can offer was not sustained.")
    return Found(low, high, trials)


def _bracket(settings: SearchSettings) -> Generator[TryRate, bool, tuple[float, float, int] | NotFound]:
    """A rate that passes and one that fails, at most a factor of the start apart: (low, high, trials)."""
    low, high = _rounded(settings.low_rps, settings), _rounded(settings.high_rps, settings)
    trials = 1
    if not (yield TryRate(low, "bracket", None, None)):
        while True:
            high, low = low, _rounded(low / 2, settings)
            if low >= high or low < max(settings.step_rps, 1.0):
                return NotFound(f"Not even {high:,.0f} requests/s were sustained: there is no smaller rate to try.")
            trials += 1
            if (yield TryRate(low, "bracket", None, high)):
                return low, high, trials
    while True:
        trials += 1
        if not (yield TryRate(high, "bracket", low, None)):
            return low, high, trials
        low, high = high, _rounded(high * 2, settings)
        if high > settings.largest_rps:
            return NotFound(f"{low:,.0f} requests/s were sustained, and the search may not offer more.")


def _vote(rate: float, phase: Phase, low: float, high: float) -> Generator[TryRate, bool, tuple[bool, int]]:
    """Two of three trials: whether the rate passed, and how many trials that took."""
    votes: list[bool] = []
    while max(votes.count(True), votes.count(False)) < 2:
        votes.append((yield TryRate(rate, phase, low, high)))
    return votes.count(True) == 2, len(votes)


def _rounded(rate: float, settings: SearchSettings) -> float:
    step = settings.step_rps
    return max(1, round(rate / step)) * step if step else rate
