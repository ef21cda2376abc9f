"""The clock by which a run is timed: one for all processes that work on it, whatever their own clocks say.

Whoever works on a run sets it once, from a clock that all of them see (a database's). From then on it follows the
monotonic clock, so that setting the machine's time in the middle of a run moves nothing.
"""

from __future__ import annotations

import time
from contextvars import ContextVar

_since_monotonic_s: ContextVar[float | None] = ContextVar("since_monotonic_s", default=None)


def set_run_clock(unix_s: float) -> None:
    """It is this time now, for everything that is begun from here on."""
    _since_monotonic_s.set(unix_s - time.monotonic())


def ahead_s(read_s: float, asked_s: float, answered_s: float) -> float:
    """How far a clock that said `read_s` is ahead of another one for certain, in seconds; negative when it is behind.

    It was read between `asked_s` and `answered_s` of the other one: what that could explain is not held against it.
    """
    return max(0.0, read_s - answered_s) or min(0.0, read_s - asked_s)


def run_clock_s() -> float:
    """Seconds since 1970 by the run's clock; by the process's own where none was set."""
    since_monotonic_s = _since_monotonic_s.get()
    return time.time() if since_monotonic_s is None else time.monotonic() + since_monotonic_s
