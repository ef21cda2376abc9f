"""What every file of another monitor comes down to."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.base.command import Command
from agents.base.errors import ParseError

MAX_CHARS = 16_000_000
MAX_CHANNELS = 5000
MOST_SAMPLES = 1800
"""Of a load: from half an hour on the samples are further apart than a second, and the files stay below the limit."""
MARGIN_S = 600
"""A recorder ends with the load. One that nobody ends does so itself, this long after the load should have ended."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:[.,][0-9]{1,9})?", re.ASCII)
_SHARES = ("busy", "user", "system", "interrupt", "iowait", "steal")


CPU = ChartGroup("recorded", "CPU as nmon, mpstat or top recorded it", 110, sometimes=True)
CPU_PARTS = ChartGroup("recorded_parts", "What CPUs did, as it was recorded", 111, sometimes=True)
MEMORY = ChartGroup("recorded_memory", "Memory as it was recorded", 112, sometimes=True)


@dataclass(frozen=True)
class Line:
    """One channel: seconds since the recording's first sample, and the values then."""

    unit: str
    at_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Recording:
    """Channels by name, as BenchHub's own monitors name them.

    `started_at` is the first sample by the host's clock, read as UTC, because no file names its zone; None when the
    file has no date. `notes` say what a reader of the figures must know.
    """

    tool: str
    host: str
    started_at: datetime | None
    channels: Mapping[str, Line]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recorder:
    """A tool that writes a sample of the whole host at each interval. `file` names what is kept of it, for a role.

    `package` is what to install, `cost` what it costs on the host, in words. `at_interval` is the command that writes
    so many samples so many seconds apart to its standard output.
    """

    name: str
    package: str
    file: str
    cost: str
    at_interval: Callable[[int, int], Command]

    def command(self, load_s: int) -> Command:
        """The tool for a load of that many seconds. What it records comes out of its standard output."""
        interval_s = max(1, math.ceil(load_s / MOST_SAMPLES))
        return self.at_interval(interval_s, math.ceil((load_s + MARGIN_S) / interval_s))

    def file_of(self, role: str) -> str:
        return self.file.format(role=role)


@dataclass(frozen=True)
class RecordingKind:
    """A tool whose files can be read. `read` raises ParseError, `channels` are those that it may give.

    `numbers_online`: it numbers the CPUs that are online, not all of them. `recorder` starts it beside a run's load;
    None where a run does not do that.
    """

    name: str
    read: Callable[[str], Recording]
    columns: tuple[ChannelKind, ...]
    numbers_online: bool = False
    recorder: Recorder | None = None

    @property
    def channels(self) -> tuple[ChannelKind, ...]:
        """The columns as they are named beside a run's own channels: nmon.cpu.busy_ratio."""
        return tuple(replace(column, pattern=rf"{self.name}\.{column.pattern}") for column in self.columns)


def cpu_columns(tool: str) -> tuple[ChannelKind, ...]:
    """What `Channels.add_cpu` gives for all CPUs and for each."""
    return (
        ChannelKind(r"cpu\.busy_ratio", "ratio", f"{{host}} CPUs by {tool}", CPU, panel="cpu"),
        ChannelKind(r"cpu\.([0-9]+)\.busy_ratio", "ratio", f"{{host}} {tool} cpu {{1}} busy", CPU),
        ChannelKind(
            r"cpu\.(user|system|interrupt|iowait|steal)_ratio", "ratio", f"{{host}} {tool} cpu {{1}}", CPU_PARTS
        ),
        ChannelKind(
            r"cpu\.([0-9]+)\.(user|system|interrupt|iowait|steal)_ratio",
            "ratio",
            f"{{host}} {tool} cpu {{1}} {{2}}",
            CPU_PARTS,
        ),
    )


@dataclass
class Channels:
    """Collects samples channel by channel. A value that is no number of at least 0 is left out."""

    _at_s: dict[str, list[float]] = field(default_factory=dict)
    _values: dict[str, list[float]] = field(default_factory=dict)
    _units: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, unit: str, at_s: float, value: float | None) -> None:
        if value is None or value < 0:
            return
        if name not in self._units:
            if len(self._units) >= MAX_CHANNELS:
                raise ParseError(f"there are more than {MAX_CHANNELS} channels in the recording", line=1)
            self._units[name], self._at_s[name], self._values[name] = unit, [], []
        self._at_s[name].append(at_s)
        self._values[name].append(value)

    def add_cpu(self, prefix: str, at_s: float, percents: Mapping[str, float]) -> None:
        """Shares of CPU time from per cents: user, system (interrupts included), interrupt, iowait, steal."""
        shares = {name: percents[name] / 100 for name in _SHARES if name in percents}
        if "user" in shares and "system" in shares:
            shares["busy"] = min(1.0, shares["user"] + shares["system"])
        for name, share in shares.items():
            self.add(f"{prefix}.{name}_ratio", "ratio", at_s, share)

    def lines(self) -> dict[str, Line]:
        return {
            name: Line(unit, tuple(self._at_s[name]), tuple(round(value, 6) for value in self._values[name]))
            for name, unit in sorted(self._units.items())
        }


def checked(text: str, tool: str) -> list[str]:
    """The lines of a bounded text. ParseError when it is far too long."""
    if len(text) > MAX_CHARS:
        raise ParseError(
            f"the recording of {tool} has {len(text)} characters; at most {MAX_CHARS} are read",
            hint="Record for a shorter time, or at a longer interval.",
        )
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


def number(text: str) -> float | None:
    """A number with a point or a decimal comma; None when it is none (nan, an empty column)."""
    text = text.strip()
    return float(text.replace(",", ".")) if _NUMBER.fullmatch(text) else None


def seconds_of_day(clock: str) -> int:
    """`17:05:09` or `05:05:09 PM` as seconds since midnight. ValueError when it is no time."""
    time, _, half = clock.strip().partition(" ")
    hours, minutes, seconds = (int(part) for part in time.split(":"))
    if half:
        hours = hours % 12 + (12 if half == "PM" else 0)
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 62):
        raise ValueError(f"'{clock}' is no time of day")
    return hours * 3600 + minutes * 60 + seconds


def since_first(clocks: Iterable[int]) -> list[float]:
    """Seconds since the first of these times of day; each step back is a midnight."""
    found: list[float] = []
    days = 0
    first = last = None
    for clock in clocks:
        if first is None:
            first = last = clock
        if last is not None and clock < last:
            days += 1
        last = clock
        found.append(float(clock - first + days * 86_400))
    return found
