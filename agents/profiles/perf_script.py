"""The text of `perf script`: a line for each sample, and its stack below it, the leaf first.

Source: perf-script(1) and tools/perf/builtin-script.c of Linux 6.1. A sample weighs its period, as the sampled event
counts: with a frequency (`-F`) periods differ, and plain numbers of samples would favour the slow phases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_BYTES, Folding, not_larger
from agents.profiles.base.profile import UNKNOWN, About, Profile, Unit
from agents.profiles.base.profile_format import ProfileFormat

_SAMPLE = re.compile(
    r"(?P<comm>\S.{0,60}?) {1,20}(?P<pid>-?\d{1,10})(?:/(?P<tid>\d{1,10}))? {1,20}"
    r"(?:\[\d{1,6}\] {1,20})?(?P<at>\d{1,12}\.\d{1,9}): {1,20}"
    r"(?:(?P<period>\d{1,18}) {1,20})?(?P<event>[A-Za-z][\w.:/=,@-]{0,200}?):(?: {1,20}(?P<rest>\S.*))?"
)
_FRAME = re.compile(r"(?P<address>[0-9a-f]{1,16}) +(?P<symbol>.+)")
_LOST = re.compile(r"\blost:? {1,20}(\d{1,12})")
_OFFSET = re.compile(r"\+0x[0-9a-f]{1,16}$")
_MODIFIERS = re.compile(r":[a-zA-Z]{1,8}$")
_HEAD = re.compile(
    rb"^ {0,20}\S.{0,60}? {1,20}-?\d{1,10}(?:/\d{1,10})? {1,20}(?:\[\d{1,6}\] {1,20})?\d{1,12}\.\d{1,9}:"
    rb" {1,20}(?:\d{1,18} {1,20})?[A-Za-z][\w.:/=,@-]{0,200}:",
    re.MULTILINE,
)
_CLOCKS = ("cpu-clock", "task-clock")
_MAX_LINE = 20_000


@dataclass
class _Open:
    """The sample whose stack is being read."""

    line: int
    thread: str
    weight: float
    at_s: float
    stack: list[int] = field(default_factory=list)


@dataclass
class _Reading:
    """What was read so far."""

    folding: Folding = field(default_factory=Folding)
    frames: dict[str, int] = field(default_factory=dict)
    event: str | None = None
    samples: int = 0
    lost: int | None = None
    open: _Open | None = None

    def begin(self, seen: re.Match[str], line: int) -> None:
        self.end()
        event = _MODIFIERS.sub("", seen["event"])
        if self.event not in (None, event):
            raise ParseError(
                f"line {line} is a sample of {event[:60]}, those before are of {self.event}",
                hint="A profile is of one event: record with one -e.",
                line=line,
            )
        self.event = event
        self.samples += 1
        thread = f"[{seen['comm']} tid={seen['tid'] or seen['pid']}]"
        self.open = _Open(line, thread, float(seen["period"] or 1), float(seen["at"]))
        if seen["rest"] and (frame := _FRAME.fullmatch(seen["rest"].strip())):
            self.open.stack.append(self.frame(frame["symbol"]))

    def frame(self, symbol: str) -> int:
        found = self.frames.get(symbol)
        if found is None:
            name, bracket, library = symbol.rpartition(" (")
            if not bracket or not library.endswith(")"):
                name, library = symbol, ")"
            place = library[:-1].rsplit("/", 1)[-1]
            place = "" if place in ("inlined", UNKNOWN) else place
            found = self.frames[symbol] = self.folding.frame(_OFFSET.sub("", name.strip()), place)
        return found

    def end(self) -> None:
        if self.open is None:
            return
        leaf_first = self.open.stack or [self.folding.frame(UNKNOWN)]
        stack = [self.folding.frame(self.open.thread), *reversed(leaf_first)]
        number = self.folding.add(stack, self.open.weight, line=self.open.line)
        self.folding.seen(number, self.open.at_s, self.open.at_s, self.open.weight)
        self.open = None


def looks_like(head: bytes) -> bool:
    """Whether one of its lines is the first of a sample of perf."""
    return b"\0" not in head and _HEAD.search(head) is not None


def read(data: bytes) -> Profile:
    """The profile of what `perf script` wrote: one event, threads as first frames. ParseError names the line."""
    not_larger(len(data), MAX_BYTES)
    reading = _Reading()
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if len(raw) > _MAX_LINE:
            raise ParseError(
                f"line {number} has {len(raw):,} characters", hint="Give text of perf script.", line=number
            )
        _line(reading, raw.decode("utf-8", "replace").rstrip(), number)
    reading.end()
    event = reading.event
    unit: Unit = "nanoseconds" if event in _CLOCKS else "events"
    return reading.folding.profile(About(unit, event, "perf", None, reading.samples, reading.lost))


def _line(reading: _Reading, line: str, number: int) -> None:
    if not line:
        reading.end()
    elif line.startswith("#"):
        return
    elif "PERF_RECORD_LOST" in line and (lost := _LOST.search(line)):
        reading.lost = (reading.lost or 0) + int(lost[1])
    elif line[0] != "\t" and (sample := _SAMPLE.fullmatch(line.strip())):  # the name of `dd` is an address, too
        reading.begin(sample, number)
    elif line[0] in " \t" and (frame := _FRAME.fullmatch(line.strip())):
        if reading.open is None:
            raise ParseError(f"line {number} is a frame without a sample", hint="Give the whole text.", line=number)
        reading.open.stack.append(reading.frame(frame["symbol"]))
    elif "PERF_RECORD_" not in line:
        raise ParseError(
            f"line {number} is neither a sample nor a frame of perf: {line[:60]!r}",
            hint="Give what `perf script` prints, without options for other fields.",
            line=number,
        )


PERF_SCRIPT = ProfileFormat("perf-script", "perf script", looks_like, read, ".perf.txt")
