"""Reading and writing pprof. Source: google/pprof, proto/profile.proto.

Several values of a sample: the default one, else the last, as `go tool pprof` chooses; one that is called samples, or
counted, says how many samples there were. Labels, addresses and line numbers are left out.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field, replace

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_BYTES, MAX_STACKS, Folding, not_larger
from agents.profiles.base.profile import UNKNOWN, About, Frame, Profile, Unit
from agents.profiles.base.profile_format import ProfileFormat
from agents.profiles.pprof.otlp_format import THEIRS
from agents.profiles.pprof.wire import bytes_field, encoded, fields, nested, number, number_field, numbers, signed

_NS = {"nanoseconds": 1.0, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
_UNITS: dict[str, Unit] = {"count": "samples", "bytes": "bytes", **dict.fromkeys(_NS, "nanoseconds")}
_NO_EVENT = "samples"
_MESSAGES = (1, 2, 3, 4, 5, 6, 11, 13, 16)
_NUMBERS = (7, 8, 9, 10, 12, 13, 14, 15)
_MAX_STRINGS = 2_000_000
_MAX_VALUES = 64
_PRODUCERS = {"Produced by async-profiler": "async-profiler"}


@dataclass
class _Raw:
    """The parts of the file, with their places in the table of texts."""

    types: list[tuple[int, int]] = field(default_factory=list)
    samples: list[memoryview] = field(default_factory=list)
    mappings: dict[int, int] = field(default_factory=dict)
    locations: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    functions: dict[int, tuple[int, int]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    comments: list[int] = field(default_factory=list)
    default: int = 0

    def text(self, index: int) -> str:
        if index >= len(self.texts):
            raise ParseError(f"the profile names text {index} of {len(self.texts)}", hint="Is the file whole?")
        return self.texts[index]


def looks_like(head: bytes) -> bool:
    """Whether it is binary, and its first field one that a pprof profile has."""
    if head.startswith(b"FLR\0") or not any(byte < 9 for byte in head[:4096]):
        return False
    try:
        name, value = next(fields(memoryview(head)))
    except (ParseError, StopIteration):
        return False
    if name == 1 and isinstance(value, memoryview):  # a type of sample has numbers only, unlike what OpenTelemetry has
        return bytes(value[:1]) not in (b"\n", b"\x12")
    return name in _MESSAGES if isinstance(value, memoryview) else name in _NUMBERS


def read(data: bytes) -> Profile:
    """The profile of an unpacked pprof file. ParseError: it is none, or names what it does not have."""
    not_larger(len(data), MAX_BYTES)
    raw = _raw(memoryview(data))
    chosen = _chosen(raw)
    kind, unit_text = (raw.text(index) for index in raw.types[chosen])
    folding = Folding()
    stacks = _stacks(folding, raw)
    scale, counted = _NS.get(unit_text, 1.0), _counted(raw)
    samples = 0
    for sample in raw.samples:
        locations, values = _sample(sample)
        if len(values) != len(raw.types):
            raise ParseError(
                f"a sample has {len(values)} values; the profile has {len(raw.types)}", hint="Is the file whole?"
            )
        stack: list[int] = []
        for location in reversed(locations):
            if location not in stacks:
                raise ParseError(f"a sample names location {location}, which is not there", hint="Is the file whole?")
            stack += stacks[location]
        folding.add(stack, values[chosen] * scale)
        samples += values[counted] if counted is not None else 0
    engines = [engine for text in map(raw.text, raw.comments) for mark, engine in _PRODUCERS.items() if mark in text]
    event = None if kind in ("", _NO_EVENT) else kind
    about = About(_UNITS.get(unit_text, "events"), event, engines[0] if engines else None)
    return folding.profile(replace(about, samples=samples if counted is not None and samples >= 0 else None))


def _raw(message: memoryview) -> _Raw:
    raw = _Raw()
    for name, value in fields(message):
        if name == 1:
            one = dict(fields(nested(value)))
            raw.types.append((number(one.get(1, 0)), number(one.get(2, 0))))
        elif name == 2:
            raw.samples.append(nested(value))
        elif name == 3:
            one = dict(fields(nested(value)))
            raw.mappings[number(one.get(1, 0))] = number(one.get(5, 0))
        elif name == 4:
            _location(raw, nested(value))
        elif name == 5:
            one = dict(fields(nested(value)))
            raw.functions[number(one.get(1, 0))] = (number(one.get(2, 0)), number(one.get(4, 0)))
        elif name == 6:
            raw.texts.append(bytes(nested(value)).decode("utf-8", "replace"))
        elif name == 13:
            raw.comments += numbers(value)
        elif name == 14:
            raw.default = number(value)
        if max(len(raw.types) - _MAX_VALUES, len(raw.samples) - 4 * MAX_STACKS, len(raw.texts) - _MAX_STRINGS) > 0:
            raise ParseError("the profile has more samples or texts than are read", hint="Profile for a shorter time.")
    if not raw.types:
        raise ParseError("the profile is no pprof: it has no type of sample", hint="Give the file as it was written.")
    return raw


def _location(raw: _Raw, message: memoryview) -> None:
    mapping, name, functions = 0, 0, list[int]()
    for part, value in fields(message):
        if part == 1:
            name = number(value)
        elif part == 2:
            mapping = number(value)
        elif part == 4:
            functions.append(number(dict(fields(nested(value))).get(1, 0)))
    raw.locations[name] = (mapping, functions)


def _stacks(folding: Folding, raw: _Raw) -> dict[int, list[int]]:
    """The frames of each location, the caller first: several where functions were inlined."""
    frames: dict[int, int] = {}
    for name, (text, place) in raw.functions.items():
        frames[name] = folding.frame(raw.text(text), raw.text(place))
    found: dict[int, list[int]] = {}
    for name, (mapping, functions) in raw.locations.items():
        if missing := next((one for one in functions if one not in frames), None):
            raise ParseError(f"a location names function {missing}, which is not there", hint="Is the file whole?")
        library = raw.text(raw.mappings.get(mapping, 0)).rsplit("/", 1)[-1] if raw.texts else ""
        stack = [frames[one] for one in reversed(functions) if one in frames]
        found[name] = stack or [folding.frame(UNKNOWN, library)]
    return found


def _sample(message: memoryview) -> tuple[list[int], list[int]]:
    locations, values = list[int](), list[int]()
    for name, value in fields(message):
        if name == 1:
            locations += numbers(value)
        elif name == 2:
            values += map(signed, numbers(value))
    return locations, values


def _chosen(raw: _Raw) -> int:
    wanted = raw.text(raw.default) if raw.default else ""
    names = [raw.text(kind) for kind, _ in raw.types]
    return names.index(wanted) if wanted in names else len(names) - 1


def _counted(raw: _Raw) -> int | None:
    """Which value is the number of samples; None when none is."""
    return next((at for at, (_, unit) in enumerate(raw.types) if raw.text(unit) == "count"), None)


def write(profile: Profile) -> bytes:
    """The profile as pprof, packed: one value for each stack, a location for each frame."""
    texts: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    kind = number_field(1, text(profile.about.event or _NO_EVENT)) + number_field(2, text(THEIRS[profile.about.unit]))
    parts = [bytes_field(1, kind)]
    places, edges = profile.places.tolist(), profile.edges.tolist()
    names = [encoded(name) for name in range(1, len(profile.frames) + 1)]
    for at, weight in enumerate(profile.weights.tolist()):
        stack = b"".join([names[place] for place in reversed(places[edges[at] : edges[at + 1]])])
        parts.append(bytes_field(2, bytes_field(1, stack) + bytes_field(2, encoded(max(1, round(weight))))))
    for name, frame in enumerate(profile.frames, start=1):
        parts += _frame(name, frame, text(frame.name), text(frame.place))
    if profile.about.engine:
        parts.append(number_field(13, text(f"Produced by {profile.about.engine}")))
    parts += [bytes_field(6, one.encode("utf-8", "replace")) for one in texts]
    return gzip.compress(b"".join(parts), 6, mtime=0)


def _frame(name: int, frame: Frame, text: int, place: int) -> list[bytes]:
    line = number_field(1, name)
    system = number_field(3, text)
    function = number_field(1, name) + number_field(2, text) + system + number_field(4, place)
    return [bytes_field(4, number_field(1, name) + bytes_field(4, line)), bytes_field(5, function)]


PPROF = ProfileFormat("pprof", "pprof", looks_like, read, ".pb.gz", write)
