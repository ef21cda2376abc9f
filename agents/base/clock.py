"""The clock by which a run is timed: one for all processes that work on it, whatever their own clocks say.

Whoever works on a run sets it once, from a clock that all of them see (a database's). From then on it follows the
monotonic clock, so that setting the machine's time in the middle of a run moves nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class RunClock:
    """Seconds since 1970 less this process's monotonic clock; wrong by at most `error_s`."""

    since_monotonic_s: float
    error_s: float

    @classmethod
    def read(cls, ask: Callable[[], float]) -> RunClock:
        """The clock that `ask` reads, in seconds since 1970: it was read somewhere between question and answer."""
        asked_s = time.monotonic()
        read_s = ask()
        answered_s = time.monotonic()
        return cls(read_s - (asked_s + answered_s) / 2, (answered_s - asked_s) / 2)


_clock: ContextVar[RunClock | None] = ContextVar("run_clock", default=None)


def set_run_clock(clock: RunClock) -> None:
    """Everything that is begun from here on goes by it."""
    _clock.set(clock)


def ahead_s(read_s: float, asked_s: float, answered_s: float) -> float:
    """How far a clock that said `read_s` is ahead of another one for certain, in seconds; negative when it is behind.

    It was read between `asked_s` and `answered_s` of the other one: what that could explain is not held against it.
    """
    return max(0.0, read_s - answered_s) or min(0.0, read_s - asked_s)


def ahead_of_run_s(read_s: float, asked_s: float, answered_s: float) -> float:
    """As `ahead_s`, against the run's clock; what that one may itself be wrong by is not held against it either."""
    clock = _clock.get()
    error_s = clock.error_s if clock else 0.0
    return ahead_s(read_s, asked_s - error_s, answered_s + error_s)


def run_clock_s() -> float:
    """Seconds since 1970 by the run's clock; by the process's own where none was set."""
    clock = _clock.get()
    return time.time() if clock is None else time.monotonic() + clock.since_monotonic_s
