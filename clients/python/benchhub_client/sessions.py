"""Code that measures itself: what it logs becomes one run."""

from __future__ import annotations

import json
import math
import re
import time
import unicodedata
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .connection import CONTROLS, Trouble

if TYPE_CHECKING:
    from .hub import Hub, Run

ALIASES: Mapping[str, str] = {
    "rps": "throughput_rps",
    "requests_per_s": "throughput_rps",
    "errors": "errors_total",
    "mean_ms": "latency_mean_ms",
    "max_ms": "latency_max_ms",
}
"""Short names of figures; any name of `GET /metrics` may be logged as it is."""
MOST_POINTS = 24_000
"""Of one channel, and of one request: the API takes 50,000 values at once, of which a point is two."""
MOST_CHANNELS = 500
_CHANNELS_AT_ONCE = 50
_MOST_CHARS = 2000
_MOST_NAME, _MOST_UNIT = 120, 20
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode that nobody sees or types; the server has them in no name."""
_OWN_NAME = re.compile(r"[a-z][a-z0-9_.]{0,59}", re.ASCII)
_PERCENTILE = re.compile(r"(?:latency_)?p([0-9]{1,3})(?:_([0-9]{1,6}))?_ms")


def figure_name(name: str) -> str:
    """BenchHub's name of a figure: `rps` is throughput_rps, and `p99_9_ms` latency_p99.9_ms, no name in Python."""
    if percentile := _PERCENTILE.fullmatch(name):
        return f"latency_p{'.'.join(filter(None, percentile.groups()))}_ms"
    return ALIASES.get(name, name)


@dataclass
class Channel:
    """What was sampled of one channel: its unit, and its points as (seconds since the session began, value)."""

    unit: str = ""
    points: list[tuple[float, float]] = field(default_factory=list)


class Session:
    """Collects the figures of one measurement and sends them at its end, once; see `Hub.session`.

    An exception that leaves the block stores a run that failed, with what it says, and goes on to the caller.
    `run` is the stored run afterwards; a token that may not read knows its number, url, outcome, validity and reasons.
    `result` and `channels` (by name) are what is sent (`POST /results`): what BenchHub refuses there may be changed,
    and sent again with `send`.
    """

    def __init__(self, hub: Hub, fields: Mapping[str, Any], key: str = "") -> None:
        for name, value in fields.items():
            _sendable(name, value)
        self._hub = hub
        self._key = key or uuid.uuid4().hex  # one for the session: a lost answer does not store it twice
        self._has_own_key = bool(key)
        self._began_s = time.monotonic()
        self._first_sent_at = ""
        self.channels: dict[str, Channel] = {}
        self.result: dict[str, Any] = {**fields, "metrics": {}, "own_metrics": {}}
        self.run: Run | None = None

    def log(self, **figures: float) -> None:
        """Figures by name, the last value of each counts: `rps=5120.5, p99_9_ms=18.2, errors=0, requests=307230`.

        The unit is the end of the name: `_rps` requests per second, `_ms` milliseconds, `_s` seconds, `_ratio` 0 to 1.
        """
        self.result["metrics"].update({figure_name(name): _finite(name, value) for name, value in figures.items()})

    def log_own(self, name: str, value: float, *, unit: str, better: str) -> None:
        """A figure that BenchHub does not know, with its unit; `better` is "lower" or "higher".

        ValueError for a name of other than 1 to 60 small letters, digits, _ and ., and a unit of other than 1 to 20
        characters.
        """
        if better not in ("lower", "higher"):
            raise Trouble(f'better is "lower" or "higher", not {better!r}.')
        if not _OWN_NAME.fullmatch(str(name)):
            raise ValueError(f"name: at most 60 small letters, digits, _ and ., a letter first, not {name!r}.")
        own = {"value": _finite("value", value), "unit": _text("unit", unit, 1, _MOST_UNIT), "direction": better}
        self.result["own_metrics"][name] = own

    def sample(self, channel: str, value: float, *, unit: str = "", at_s: float | None = None) -> None:
        """A point of a channel over time; `at_s` counts seconds from the begin of the session, else it is now.

        ValueError for a channel of other than 1 to 120 characters, a unit of more than 20, a time before the last one
        of the channel, and for more than 24,000 points or 500 channels.
        """
        if channel not in self.channels:
            channel, unit = _text("channel", channel, 1, _MOST_NAME), _text("unit", unit, 0, _MOST_UNIT)
        at_s = time.monotonic() - self._began_s if at_s is None else _finite("at_s", at_s)
        point = (at_s, _finite("value", value))
        if channel not in self.channels and len(self.channels) == MOST_CHANNELS:
            raise ValueError(f"channel: a session has at most {MOST_CHANNELS}, without {channel!r}.")
        points = self.channels.setdefault(channel, Channel(unit)).points
        if len(points) == MOST_POINTS:
            raise ValueError(f"channel: {channel} has {MOST_POINTS:,} points, and can have no more; sample less often.")
        if points and at_s < points[-1][0]:
            raise ValueError(f"at_s: the times of {channel} must rise, not fall from {points[-1][0]:g} to {at_s:g} s.")
        points.append(point)

    def send(self) -> Run:
        """Store what was logged: one run, however often it is sent. For a session whose end could not send it.

        Trouble says what is in the way; what was logged stays here.
        """
        self._note_time()
        body, batches = self.result, self._batches()
        if body.get("failure"):  # a run that failed has no figures
            body, batches = {name: body[name] for name in body if name not in ("metrics", "own_metrics")}, [[]]
        stored = self.run = self._hub._stored(self._post({**body, "series": batches[0]}))
        for series in batches[1:]:  # each takes the place of what is there
            self._hub.api.post(f"/results/{stored.number}/series", {"series": series})
        self.run = self._hub._read(stored)
        return self.run

    def _note_time(self) -> None:
        """It was measured when it is to be sent first, however late it arrives.

        Under a key of the caller's the first try has no time: the same figures are the same request another time.
        """
        if not self._first_sent_at:
            self._first_sent_at = datetime.now(timezone.utc).isoformat()  # noqa: UP017 - Python 3.10
            if self._has_own_key:
                return
        self.result.setdefault("measured_at", self._first_sent_at)

    def _post(self, body: dict[str, Any]) -> Mapping[str, Any]:
        try:
            answer: Mapping[str, Any] = self._hub.api.post("/results", body, self._key)
        except Trouble as trouble:
            dated = self._has_own_key and body.get("measured_at") == self._first_sent_at
            if not dated or "Idempotency-Key" not in str(trouble):
                raise
            # The first try, without a time, was stored after all, and only its answer was lost.
            body = {name: body[name] for name in body if name != "measured_at"}
            answer = self._hub.api.post("/results", body, self._key)
        return answer

    def _batches(self) -> list[list[dict[str, Any]]]:
        """The channels as series, in as many requests as they need."""
        batches: list[list[dict[str, Any]]] = [[]]
        count = 0
        for name, channel in self.channels.items():
            points = list(channel.points)
            if count + len(points) > MOST_POINTS or len(batches[-1]) == _CHANNELS_AT_ONCE:
                batches.append([])
                count = 0
            at_s, values = [one[0] for one in points], [one[1] for one in points]
            batches[-1].append({"channel": name, "unit": channel.unit, "at_s": at_s, "values": values})
            count += len(points)
        return batches

    def __enter__(self) -> Session:
        self._began_s = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            return  # interrupted: nothing was measured to its end
        if error is not None:
            said = CONTROLS.sub("\ufffd", f"{type(error).__name__}: {error}")[:_MOST_CHARS]
            self.result["failure"] = said.encode(errors="replace").decode()  # half a surrogate is no text
            try:
                self.send()
            except Trouble as trouble:
                self._hub._say(f"The failure was not stored: {trouble}")  # the caller's own error matters more
            return
        if not self.result["metrics"] and not self.result["own_metrics"]:
            raise Trouble("The session logged no figure: s.log(rps=..., p99_ms=...).")
        try:
            self.send()
        except Trouble as trouble:
            said = str(trouble).rstrip(".")
            if self.run is None:
                kept = "It keeps its figures: `send()` of the session stores them, once."
                raise Trouble(f"The session was not sent: {said}. {kept}") from trouble
            stored = f"Run #{self.run.number} was stored, but not all of its channels"
            raise Trouble(f"{stored}: {said}. `send()` of the session sends them again.") from trouble


def _finite(name: str, value: float) -> float:
    """The number. ValueError names the argument of one that cannot be stored."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: a number is needed, not {value!r}.") from error
    if not math.isfinite(number):
        raise ValueError(f"{name}: {number} cannot be stored.")
    return number


def _text(name: str, value: str, least: int, most: int) -> str:
    """The text without spaces around it, as the server keeps it. ValueError names the argument that it would refuse."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: a text is needed, not {value!r}.")
    text = value.strip()
    if not least <= len(text) <= most:
        raise ValueError(f"{name}: {least} to {most} characters are needed, not the {len(text)} of {text[:40]!r}.")
    if hidden := next((sign for sign in text if unicodedata.category(sign) in _HIDDEN), ""):
        raise ValueError(f"{name}: {text[:40]!r} has U+{ord(hidden):04X}, which nobody sees or types.")
    return text


def _sendable(name: str, value: object) -> None:
    """ValueError names what cannot be sent at the end of the session, when nothing can be measured again."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}.") from error
