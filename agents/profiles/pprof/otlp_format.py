"""Reading profiles of OpenTelemetry as `jfr-converter -o otlp` writes them: pprof's tables, and each sample's time.

Source: opentelemetry-proto, profiles/v1development/profiles.proto of 2025, and OtlpConstants of jfr-converter 4.5.
That writes a profile for each chunk of a recording: those of a file are added together. The thread, which is an
attribute of the samples, is the first frame of their stacks.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_BYTES, MAX_DEPTH, MAX_SEEN, MAX_STACKS, Folding, not_larger
from agents.profiles.base.profile import UNKNOWN, About, Profile, Unit
from agents.profiles.base.profile_format import ProfileFormat
from agents.profiles.pprof.wire import (
    Value,
    bytes_field,
    encoded,
    fields,
    nested,
    number,
    number_field,
    numbers,
    placed,
)

_HEAD = re.compile(rb"\n[\x80-\xff]{0,9}[\x00-\x7f][\n\x12]", re.DOTALL)
_NS = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
_UNITS: dict[str, Unit] = {"count": "samples", "bytes": "bytes", **dict.fromkeys(_NS, "nanoseconds")}
THEIRS: dict[Unit, str] = {"samples": "count", "events": "events", "bytes": "bytes", "nanoseconds": "nanoseconds"}
"""What the units are called in files of pprof and OpenTelemetry."""
_LOCATIONS, _FUNCTIONS, _TEXTS, _ATTRIBUTES, _STACKS = 2, 3, 5, 6, 7
_MOST = 2_000_000
_MOST_PROFILES = 100_000
_THREAD = "thread.name"


class _Table:
    """The entries of a table as places in the file's bytes."""

    def __init__(self) -> None:
        self._begins = array("q")
        self._ends = array("q")

    def __len__(self) -> int:
        return len(self._ends)

    def append(self, begin: int, end: int) -> None:
        self._begins.append(begin)
        self._ends.append(end)

    def __getitem__(self, index: int) -> slice:
        return slice(self._begins[index], self._ends[index])


@dataclass
class _Dictionary:
    """The tables of the file, by their number in it, each entry a part of `message`."""

    message: memoryview
    tables: dict[int, _Table] = field(default_factory=dict)
    frames: dict[int, list[int]] = field(default_factory=dict)
    """Those of each location that was asked for, the caller first."""

    def entry(self, table: int, index: int) -> memoryview:
        found = self.tables.get(table, _Table())
        if index >= len(found):
            raise ParseError(
                f"the profile names entry {index} of table {table}, which has {len(found)}", hint="Is the file whole?"
            )
        return self.message[found[index]]

    def text(self, index: int) -> str:
        return bytes(self.entry(_TEXTS, index)).decode("utf-8", "replace")


def looks_like(head: bytes) -> bool:
    """Whether its first field has a message in it, which that of a pprof file, with its type of sample, has not."""
    return _HEAD.match(head) is not None


def read(data: bytes) -> Profile:
    """The profile of an unpacked file. ParseError: it is none, has several events, or names what it does not have."""
    folding = Folding()
    return folding.profile(fold(folding, data))


def fold(folding: Folding, data: bytes) -> About:
    """Add the samples of an unpacked file to others; what it says of itself. ParseError as for `read`."""
    not_larger(len(data), MAX_BYTES)
    profiles, dictionary = _parts(memoryview(data))
    kinds = {_kind(profile, dictionary) for profile in profiles}
    if len(kinds) != 1:
        raise ParseError(
            f"the file has profiles of {len(kinds)} events; one is read",
            hint="Convert one event: jfr-converter --cpu -o otlp.",
        )
    ((kind, unit_text),) = kinds
    taken = 0
    for profile in profiles:
        for name, value in fields(profile):
            if name == 2:
                taken += _add(folding, dictionary, nested(value), _NS.get(unit_text, 1.0))
    return About(_UNITS.get(unit_text, "events"), kind or None, None, None, taken or None)


def _kind(profile: memoryview, dictionary: _Dictionary) -> tuple[str, str]:
    """The event and its unit, as the profile says them."""
    said: dict[int, Value] = {}
    samples = 0
    for name, value in fields(profile):
        if name == 1:
            said = dict(fields(nested(value)))
        samples += name == 2
    if samples > 4 * MAX_STACKS:
        raise _too_many("samples")
    kind, unit_text = (dictionary.text(number(said[at])) if at in said else "" for at in (1, 2))
    return kind, unit_text


def _parts(message: memoryview) -> tuple[list[memoryview], _Dictionary]:
    """The profiles of the file, and their tables."""
    dictionary, profiles = _Dictionary(message), list[memoryview]()
    for name, value, end in placed(message):
        if name == 1:
            scopes = (nested(scope) for at, scope in fields(nested(value)) if at == 2)
            profiles += [nested(one) for scope in scopes for at, one in fields(scope) if at == 2]
            if len(profiles) > _MOST_PROFILES:
                raise _too_many("profiles")
        elif name == 2:
            tables = nested(value)
            begin = end - len(tables)
            for table, entry, place in placed(tables):
                entries = dictionary.tables.setdefault(table, _Table())
                entries.append(begin + place - len(nested(entry)), begin + place)
                if len(entries) > _MOST:
                    raise _too_many("entries of a table")
    if not profiles:
        raise ParseError("the file has no profile", hint="Convert one event: jfr-converter --cpu -o otlp.")
    return profiles, dictionary


def _add(folding: Folding, dictionary: _Dictionary, message: memoryview, scale: float) -> int:
    """Count a stack of a thread, with all the moments at which it was seen; how many these are."""
    stack_index, attributes, values, times = 0, list[int](), list[int](), list[NDArray[np.float64]]()
    for name, value in fields(message):
        if name == 1:
            stack_index = number(value)
        elif name == 2:
            attributes += numbers(value)
        elif name == 4:
            values += numbers(value)
        elif name == 5:
            times.append(_times_s(value))
    at_s = np.concatenate(times) if times else np.zeros(0)
    weights = np.array(values, np.float64) * scale if values else np.full(len(at_s), scale)
    if len(at_s) and len(weights) != len(at_s):
        raise ParseError(f"a sample has {len(weights)} values at {len(at_s)} times", hint="Is the file whole?")
    stack = [*_thread(folding, dictionary, attributes), *_stack(folding, dictionary, stack_index)]
    added = folding.add(stack, float(weights.sum()))
    for one_s, weight in zip(at_s[:MAX_SEEN].tolist(), weights[:MAX_SEEN].tolist(), strict=False):
        folding.seen(added, one_s, one_s, weight)
    return len(at_s)


def _times_s(value: int | memoryview) -> NDArray[np.float64]:
    """Seconds since 1970 of one time, or of several packed together."""
    if isinstance(value, int):
        return np.array([value / 1e9])
    if len(value) % 8:
        raise ParseError("the times of a sample are no numbers of 64 bits", hint="Is the file whole?")
    return np.frombuffer(value, "<u8") / 1e9


def _thread(folding: Folding, dictionary: _Dictionary, attributes: Sequence[int]) -> list[int]:
    for index in attributes:
        said = dict(fields(dictionary.entry(_ATTRIBUTES, index)))
        if dictionary.text(number(said.get(1, 0))) == _THREAD:
            named = dict(fields(nested(said.get(2, memoryview(b""))))).get(1, memoryview(b""))
            name = bytes(nested(named)).decode("utf-8", "replace")
            return [folding.frame(name if name.endswith("]") else f"thread ({name})")]  # [main tid=1] of a JVM
    return []


def _stack(folding: Folding, dictionary: _Dictionary, index: int) -> list[int]:
    """The frames of a stack from the root to the leaf, as far as `Folding` looks before it refuses a deep one."""
    locations = [one for name, value in fields(dictionary.entry(_STACKS, index)) if name == 1 for one in numbers(value)]
    stack: list[int] = []
    for location in reversed(locations):
        if location not in dictionary.frames:
            dictionary.frames[location] = _frames(folding, dictionary, location)
        stack += dictionary.frames[location]
        if len(stack) > MAX_DEPTH:
            break
    return stack or [folding.frame(UNKNOWN)]


def _frames(folding: Folding, dictionary: _Dictionary, location: int) -> list[int]:
    """The functions of a location, the caller first: several where they were inlined."""
    found = []
    for name, value in fields(dictionary.entry(_LOCATIONS, location)):
        if name == 3:
            line = dict(fields(nested(value)))
            function = dict(fields(dictionary.entry(_FUNCTIONS, number(line.get(1, 0)))))
            texts = (dictionary.text(number(function.get(at, 0))) for at in (1, 3))
            found.append(folding.frame(*texts))
    return found[::-1] or [folding.frame(UNKNOWN)]


def write(folding: Folding, about: About) -> bytes:
    """A file with all samples of a folding, each with its times where they are known.

    Threads are frames as others are; weights are whole numbers, at least 1.
    """
    texts: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    kind = number_field(1, text(about.event or "")) + number_field(2, text(THEIRS[about.unit]))
    samples = [bytes_field(1, kind)]
    tables = [bytes_field(table, b"") for table in (_LOCATIONS, _FUNCTIONS, _STACKS)]  # entry 0 stands for nothing
    for index, frame in enumerate(folding.frames(), start=1):
        tables.append(bytes_field(_LOCATIONS, bytes_field(3, number_field(1, index))))
        tables.append(bytes_field(_FUNCTIONS, number_field(1, text(frame.name)) + number_field(3, text(frame.place))))
    for index, (places, weight, at_s, weights) in enumerate(folding.moments(), start=1):
        stack = b"".join([encoded(place + 1) for place in reversed(places)])
        tables.append(bytes_field(_STACKS, bytes_field(1, stack)))
        values = b"".join([encoded(max(1, round(one))) for one in (weights.tolist() or [weight])])
        times = bytes_field(5, np.rint(at_s * 1e9).astype("<u8").tobytes()) if len(at_s) else b""
        samples.append(bytes_field(2, number_field(1, index) + bytes_field(4, values) + times))
    tables += [bytes_field(_TEXTS, one.encode("utf-8", "replace")) for one in texts]
    profile = bytes_field(1, bytes_field(2, bytes_field(2, b"".join(samples))))
    return profile + bytes_field(2, b"".join(tables))


def _too_many(what: str) -> ParseError:
    return ParseError(f"the profile has more {what} than are read", hint="Profile for a shorter time.")


OTLP = ProfileFormat("otlp", "OpenTelemetry profiles (jfr-converter)", looks_like, read, ".otlp")
