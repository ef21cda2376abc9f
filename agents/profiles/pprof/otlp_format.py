"""Reading profiles of OpenTelemetry as `jfr-converter -o otlp` writes them: pprof's tables, and each sample's time.

Source: opentelemetry-proto, profiles/v1development/profiles.proto of 2025, and OtlpConstants of jfr-converter 4.5. One
profile for each file. The thread, which is an attribute of the samples, is the first frame of their stacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_BYTES, MAX_DEPTH, MAX_SEEN, MAX_STACKS, Folding, not_larger
from agents.profiles.base.profile import UNKNOWN, About, Profile, Unit
from agents.profiles.base.profile_format import ProfileFormat
from agents.profiles.pprof.wire import fields, nested, number, numbers

_HEAD = re.compile(rb"\n[\x80-\xff]{0,9}[\x00-\x7f][\n\x12]", re.DOTALL)
_NS = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
_UNITS: dict[str, Unit] = {"count": "samples", "bytes": "bytes", **dict.fromkeys(_NS, "nanoseconds")}
_LOCATIONS, _FUNCTIONS, _TEXTS, _ATTRIBUTES, _STACKS = 2, 3, 5, 6, 7
_MOST = 2_000_000
_THREAD = "thread.name"


@dataclass
class _Dictionary:
    """The tables of the file, by their number in it, each entry as its bytes."""

    tables: dict[int, list[memoryview]] = field(default_factory=dict)
    frames: dict[int, list[int]] = field(default_factory=dict)
    """Those of each location that was asked for, the caller first."""

    def entry(self, table: int, index: int) -> memoryview:
        found = self.tables.get(table, [])
        if index >= len(found):
            raise ParseError(
                f"the profile names entry {index} of table {table}, which has {len(found)}", hint="Is the file whole?"
            )
        return found[index]

    def text(self, index: int) -> str:
        return bytes(self.entry(_TEXTS, index)).decode("utf-8", "replace")


def looks_like(head: bytes) -> bool:
    """Whether its first field has a message in it, which that of a pprof file, with its type of sample, has not."""
    return _HEAD.match(head) is not None


def read(data: bytes) -> Profile:
    """The profile of an unpacked file. ParseError: it is none, has several, or names what it does not have."""
    not_larger(len(data), MAX_BYTES)
    profile, dictionary = _parts(memoryview(data))
    samples: list[memoryview] = []
    kind, unit_text = "", ""
    for name, value in fields(profile):
        if name == 1:
            said = dict(fields(nested(value)))
            kind, unit_text = (dictionary.text(number(said.get(at, 0))) for at in (1, 2))
        elif name == 2:
            samples.append(nested(value))
            if len(samples) > 4 * MAX_STACKS:
                raise _too_many("samples")
    folding, taken = Folding(), 0
    for sample in samples:
        taken += _add(folding, dictionary, sample, _NS.get(unit_text, 1.0))
    return folding.profile(About(_UNITS.get(unit_text, "events"), kind or None, None, None, taken or None))


def _parts(message: memoryview) -> tuple[memoryview, _Dictionary]:
    """The file's one profile, and its tables."""
    dictionary, profiles = _Dictionary(), list[memoryview]()
    for name, value in fields(message):
        if name == 1:
            scopes = (nested(scope) for at, scope in fields(nested(value)) if at == 2)
            profiles += [nested(one) for scope in scopes for at, one in fields(scope) if at == 2]
        elif name == 2:
            for table, entry in fields(nested(value)):
                entries = dictionary.tables.setdefault(table, [])
                entries.append(nested(entry))
                if len(entries) > _MOST:
                    raise _too_many("entries of a table")
    if len(profiles) != 1:
        raise ParseError(
            f"the file has {len(profiles)} profiles; one is read",
            hint="Convert one event: jfr-converter --cpu -o otlp.",
        )
    return profiles[0], dictionary


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


def _too_many(what: str) -> ParseError:
    return ParseError(f"the profile has more {what} than are read", hint="Profile for a shorter time.")


OTLP = ProfileFormat("otlp", "OpenTelemetry profiles (jfr-converter)", looks_like, read, ".otlp")
