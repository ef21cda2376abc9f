"""A run as it goes on, in a terminal: its state, how far it is by the queue's estimate, the last line of its log."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any, TextIO

from .hub import Run

LOOK_EVERY_S = 2.0
LOOK_WHILE_QUEUED_EVERY_S = 5.0
"""Each look at a run that waits has the server think the queue through."""
_BAR_SIGNS = 20
_LOG_LINES = 200
"""As many entries as one look reads of the log; a run that writes faster shows what it wrote a little later."""


def follow(run: Run, out: TextIO | None = None, pause: Callable[[float], None] = time.sleep) -> Run:
    """The finished run, and after it the one that tries it again, until there is none: the last of them.

    A terminal has one line, written anew at each look, anything else a line for each state.
    """
    out = out or sys.stderr
    run = _to_its_end(run, out, pause)
    while again := run.data["retried_as"]:
        print(f"#{run.number} {run.data['outcome']}: tried again as #{again}", file=out, flush=True)
        run = _to_its_end(run.hub.run(int(again)), out, pause)
    return run


def _to_its_end(run: Run, out: TextIO, pause: Callable[[float], None]) -> Run:
    display = _Display(out)
    while True:
        state = run.state.replace("_", " ")
        if run.state == "finished":
            display.state(run.number, state)
            return run
        if out.isatty():
            display.progress(run, state)
        else:
            display.state(run.number, state)
        pause(LOOK_WHILE_QUEUED_EVERY_S if run.state == "queued" else LOOK_EVERY_S)
        run = run.refresh()


class _Display:
    """What stands on the screen, and how far the log was read."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._shown = ""
        self._seen = 0
        self._last_line = ""
        self._estimated_in = ""
        self._expected_end_at: Any = None

    def state(self, number: int, state: str) -> None:
        """A line of its own, once for each state."""
        if state != self._shown:
            self._shown = state
            clear = "\r\x1b[K" if self._out.isatty() else ""
            print(f"{clear}#{number} {state}", file=self._out, flush=True)

    def progress(self, run: Run, state: str) -> None:
        """The present state, the bar, and what the run says, in one line as wide as the terminal."""
        self._read_log(run)
        parts = [f"#{run.number} {state}", self._far(run), self._last_line]
        line = "  ".join(part for part in parts if part)
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\x1b[K{line[:width]}", end="", file=self._out, flush=True)

    def _read_log(self, run: Run) -> None:
        for entry in run.log(after=self._seen, limit=_LOG_LINES):
            self._seen = int(entry["seq"])
            if entry["lines"]:
                self._last_line = f"{entry['source']}: {entry['lines'][-1]}"

    def _far(self, run: Run) -> str:
        """How much of a run is over and how long it takes still; of one that waits, why and when it may start."""
        if run.state == "queued":
            return _why(run.waiting)
        if run.state != self._estimated_in:  # asked once for each state: the queue is dear, and the end stays
            line = run.queue_line()
            self._estimated_in, self._expected_end_at = run.state, line and line["expected_end_at"]
        left_s, began_s = _seconds_to(self._expected_end_at), _seconds_to(run.data.get("started_at"))
        return "" if left_s is None or began_s is None else bar(-began_s, left_s)


def _why(waiting: Mapping[str, Any] | None) -> str:
    """The reason why a run waits, and in how long it may be expected to start."""
    if waiting is None:
        return ""
    start_s = _seconds_to(waiting["expected_start_at"])
    return str(waiting["reason"]) + (f" (in about {_span(start_s)})" if start_s is not None and start_s > 0 else "")


def bar(passed_s: float, left_s: float) -> str:
    """`[########------------]  40 %, about 1 min left`; a run past its estimate has none of it left."""
    left_s = max(left_s, 0.0)
    ratio = min(0.99, max(0.0, passed_s) / max(passed_s + left_s, 1e-9))
    signs = int(ratio * _BAR_SIGNS)
    said = f"about {_span(left_s)} left" if left_s else "longer than estimated"
    return f"[{'#' * signs}{'-' * (_BAR_SIGNS - signs)}] {ratio * 100:3.0f} %, {said}"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _seconds_to(text: Any) -> float | None:
    """From now to a time of the API; negative for what is over, None where there is no time."""
    if not isinstance(text, str):
        return None
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 knows no Z
    return (at - datetime.now(timezone.utc)).total_seconds()  # noqa: UP017 - Python 3.10


def figures_of(metrics: Mapping[str, float]) -> list[str]:
    """The lines that end a watched run: its first figures, each in the unit of its name."""
    names = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "errors_total")
    return [f"{name:16} {metrics[name]:.6g}" for name in names if name in metrics]
