"""speedscope's JSON: frames that several profiles share, one profile for each thread; py-spy writes it, too.

Source: https://www.speedscope.app/file-format-schema.json. Times become nanoseconds, so that weights of all forms have
the same units. Only opened and closed frames say when: as samples many tools, ours too, write stacks that they folded
before. With several profiles in a file, the name of each is the first frame of its stacks.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from agents.base.errors import ParseError
from agents.profiles.base.folding import Folding
from agents.profiles.base.json_profile import Outside, load
from agents.profiles.base.profile import About, Profile, Unit
from agents.profiles.base.profile_format import ProfileFormat

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NS: dict[str, float] = {"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}
_OURS = {"none": "samples", "bytes": "bytes", **dict.fromkeys(_NS, "nanoseconds")}
_THEIRS: dict[Unit, str] = {"samples": "none", "events": "none", "bytes": "bytes", "nanoseconds": "nanoseconds"}
_TheirUnit = Literal["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"]


class _Frame(Outside):
    name: str
    file: str | None = None


class _Shared(Outside):
    frames: list[_Frame]


class _Sampled(Outside):
    type: Literal["sampled"]
    name: str = ""
    unit: _TheirUnit
    samples: list[list[int]]
    weights: list[float]


class _Event(Outside):
    type: Literal["O", "C"]
    frame: int
    at: float


class _Evented(Outside):
    type: Literal["evented"]
    name: str = ""
    unit: _TheirUnit
    startValue: float = 0.0  # noqa: N815  # the document's own name
    events: list[_Event]


_OneOf = Annotated[_Sampled | _Evented, Field(discriminator="type")]


class _Document(Outside):
    shared: _Shared
    profiles: list[_OneOf] = Field(min_length=1)
    exporter: str | None = None


def looks_like(head: bytes) -> bool:
    """Whether it is a JSON object that names speedscope's schema, or has its parts."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    return b"speedscope.app/file-format-schema" in head or (b'"shared"' in head and b'"frames"' in head)


def read(data: bytes) -> Profile:
    """The profile of a file of speedscope, all its threads together. ParseError names the path of what is wrong."""
    document = load(_Document, data, "speedscope")
    units = {_OURS[one.unit] for one in document.profiles}
    if len(units) > 1:
        raise ParseError(f"the profiles of the file have several units: {', '.join(sorted(units))}")
    folding = Folding()
    frames = [folding.frame(frame.name, frame.file or "") for frame in document.shared.frames]
    samples = 0
    for number, one in enumerate(document.profiles):
        thread = [folding.frame(f"thread ({one.name})")] if len(document.profiles) > 1 else []
        if isinstance(one, _Sampled):
            samples += _sampled(folding, one, thread, frames, f"profiles > {number}")
        else:
            _evented(folding, one, thread, frames, f"profiles > {number}")
    sampled = all(isinstance(one, _Sampled) for one in document.profiles)
    engine = "py-spy" if (document.exporter or "").startswith("py-spy") else None
    unit: Unit = "samples" if units == {"samples"} else "bytes" if units == {"bytes"} else "nanoseconds"
    return folding.profile(About(unit, None, engine, None, samples if sampled else None))


def _sampled(folding: Folding, one: _Sampled, thread: list[int], frames: list[int], path: str) -> int:
    """How many samples this thread has."""
    if len(one.samples) != len(one.weights):
        raise ParseError(f"{path} has {len(one.samples)} samples and {len(one.weights)} weights", hint="Is it whole?")
    scale = _NS.get(one.unit, 1)
    taken = 0
    for number, (stack, weight) in enumerate(zip(one.samples, one.weights, strict=True)):
        if stack:  # py-spy and speedscope write an idle moment as an empty stack
            if min(stack) < 0 or max(stack) >= len(frames):
                raise _missing(max(stack) if min(stack) >= 0 else min(stack), frames, f"{path} > samples > {number}")
            folding.add([*thread, *map(frames.__getitem__, stack)], weight * scale)
            taken += 1
    return taken


def _evented(folding: Folding, one: _Evented, thread: list[int], frames: list[int], path: str) -> None:
    scale, stack, since = _NS.get(one.unit, 1), list[int](), one.startValue
    for number, event in enumerate(one.events):
        where = f"{path} > events > {number}"
        if event.at < since:
            raise ParseError(f"{where} is earlier than the one before it", hint="Give the file as it was written.")
        if stack and event.at > since:
            number = folding.add([*thread, *stack], (event.at - since) * scale)
            if one.unit in _NS:
                folding.seen(number, since * scale / 1e9, event.at * scale / 1e9, (event.at - since) * scale)
        since = event.at
        if not 0 <= event.frame < len(frames):
            raise _missing(event.frame, frames, where)
        frame = frames[event.frame]
        if event.type == "O":
            stack.append(frame)
        elif not stack or stack.pop() != frame:
            raise ParseError(f"{where} closes a frame that is not the last one opened", hint="Is the file whole?")
    if stack:
        raise ParseError(f"{path}: {len(stack)} frames are opened and never closed", hint="Is the file whole?")


def _missing(index: int, frames: list[int], where: str) -> ParseError:
    return ParseError(f"{where} names frame {index}; there are {len(frames)}", hint="Give the whole file.")


def write(profile: Profile) -> bytes:
    """The profile as a file for speedscope: one sampled profile, a sample for each distinct stack."""
    places = profile.places.tolist()
    edges = profile.edges.tolist()
    samples = [places[start:end] for start, end in pairwise(edges)]
    weights = [int(weight) if weight.is_integer() else weight for weight in profile.weights.tolist()]
    frames = [{"name": one.name, "file": one.place} if one.place else {"name": one.name} for one in profile.frames]
    name = " ".join(filter(None, (profile.about.engine, profile.about.event))) or "profile"
    document = {
        "$schema": SCHEMA,
        "exporter": "BenchHub",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [
            {
                "type": "sampled",
                "name": name,
                "unit": _THEIRS[profile.about.unit],
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }
    return json.dumps(document, separators=(",", ":")).encode()


SPEEDSCOPE = ProfileFormat("speedscope", "speedscope", looks_like, read, ".speedscope.json", write)
