"""Code that measures itself: what it logs becomes one run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .connection import Trouble

if TYPE_CHECKING:
    from .hub import Hub, Run

ALIASES: Mapping[str, str] = {
    "rps": "throughput_rps",
    "requests_per_s": "throughput_rps",
    "errors": "errors_total",
    **{f"p{name}_ms": f"latency_p{name}_ms" for name in ("50", "75", "90", "95", "99", "99_9", "99_99")},
    "mean_ms": "latency_mean_ms",
    "max_ms": "latency_max_ms",
}
"""Short names of figures; any name of `GET /metrics` may be logged as it is."""
_MOST_CHARS = 2000


class Session:
    """Collects the figures of one measurement and sends them at its end, once; see `Hub.session`.

    An exception that leaves the block stores a run that failed, with what it says, and goes on to the caller.
    `run` is the stored run afterwards.
    """

    def __init__(self, hub: Hub, body: Mapping[str, Any]) -> None:
        self._hub = hub
        self._body = dict(body)
        self._metrics: dict[str, float] = {}
        self._own: dict[str, dict[str, Any]] = {}
        self._series: dict[str, dict[str, Any]] = {}
        self._key = uuid.uuid4().hex  # one for the session: a lost answer does not store it twice
        self._began_s = time.monotonic()
        self.run: Run | None = None

    def log(self, **figures: float) -> None:
        """Figures by name, the last value of each counts: `rps=5120.5, p99_ms=18.2, errors=0, requests=307230`.

        The unit is the end of the name: `_rps` requests per second, `_ms` milliseconds, `_s` seconds, `_ratio` 0 to 1.
        """
        self._metrics.update({ALIASES.get(name, name): float(value) for name, value in figures.items()})

    def log_own(self, name: str, value: float, *, unit: str, better: str) -> None:
        """A figure that BenchHub does not know, with its unit; `better` is "lower" or "higher"."""
        if better not in ("lower", "higher"):
            raise Trouble(f'better is "lower" or "higher", not {better!r}.')
        self._own[name] = {"value": float(value), "unit": unit, "direction": better}

    def sample(self, channel: str, value: float, *, unit: str = "", at_s: float | None = None) -> None:
        """A point of a channel over time; `at_s` counts seconds from the begin of the session, else it is now."""
        series = self._series.setdefault(channel, {"channel": channel, "unit": unit, "at_s": [], "values": []})
        series["at_s"].append(time.monotonic() - self._began_s if at_s is None else float(at_s))
        series["values"].append(float(value))

    def __enter__(self) -> Session:
        self._began_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            return  # interrupted: nothing was measured to its end
        if error is not None:
            said = f"{type(error).__name__}: {error}"[:_MOST_CHARS]
            try:
                self.run = self._hub._send_result({**self._body, "failure": said}, self._key)
            except Trouble as trouble:
                self._hub._say(f"The failure was not stored: {trouble}")  # the caller's own error matters more
            return
        if not self._metrics and not self._own:
            raise Trouble("The session logged no figure: s.log(rps=..., p99_ms=...).")
        body = {**self._body, "metrics": self._metrics, "own_metrics": self._own, "series": [*self._series.values()]}
        self.run = self._hub._send_result(body, self._key)
