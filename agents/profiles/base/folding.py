"""Folding samples into a profile, within limits: a hostile file gets an error, never the worker's memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from agents.base.errors import ParseError
from agents.profiles.base.profile import UNKNOWN, About, Frame, Profile, Weights
from agents.profiles.base.slices import Slices, sliced

MAX_BYTES = 256_000_000
MAX_JSON_BYTES = 64_000_000
MAX_STACKS = 500_000
MAX_FRAMES = 500_000
MAX_DEPTH = 4096
MAX_PLACES = 40_000_000
MAX_READ = 100_000_000
"""Frames in all samples that are read, the same stack each time: what bounds the time."""
MAX_SEEN = 2_000_000
"""Samples whose time is kept until they are in slices: 56 MB. A profile of more has no times."""
MAX_WEIGHT = 1e18
MAX_NAME = 4000
"""Characters of a name or place; what is longer (templates of C++) is cut and marked."""
CUT = "…"
_KEY_BYTES = 16
"""What is kept of a stack to know it again: no two stacks that anybody has seen share it."""


_NONE: Weights = np.zeros(0)


class Folding:
    """Takes samples one by one; equal stacks become one. Every method raises ParseError beyond the limits."""

    def __init__(self) -> None:
        self._frames: dict[Frame, int] = {}
        self._stacks: dict[bytes, int] = {}
        self._weights = array("d")
        self._lengths = array("i")
        self._places = array("i")
        self._read = 0
        self._seen = array("i")
        self._spans = array("d")

    def frame(self, name: str, place: str = "") -> int:
        """The index of a frame, the same one for the same name and place; one without a name is unknown."""
        frame = Frame(_bounded(name) or UNKNOWN, _bounded(place))
        found = self._frames.setdefault(frame, len(self._frames))
        if found >= MAX_FRAMES:
            raise _too_much(f"more than {MAX_FRAMES:,} functions")
        return found

    def add(self, stack: Iterable[int], weight: float, *, line: int | None = None) -> int:
        """Count a stack, from its root to its leaf, with a weight in the profile's unit; the stack's number for `seen`.

        A weight of 0 is left out, with the number -1.
        ParseError: the stack is empty or too deep, or the weight is none.
        """
        if not math.isfinite(weight) or not 0 <= weight <= MAX_WEIGHT:
            raise ParseError(
                f"a stack weighs {weight}",
                hint="Weights are numbers of at least 0. A difference of two profiles is none: give the two.",
                line=line,
            )
        places = array("i", stack)
        if not places:
            raise ParseError("a sample has no frame", hint="Give the whole file as the profiler wrote it.", line=line)
        if len(places) > MAX_DEPTH:
            raise _too_much(f"a stack of more than {MAX_DEPTH:,} frames", line=line)
        self._read += len(places)
        if self._read > MAX_READ:
            raise _too_much(f"more than {MAX_READ:,} frames in its samples", line=line)
        if weight == 0:
            return -1
        key = blake2b(places, digest_size=_KEY_BYTES).digest()
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) >= MAX_STACKS:
                raise _too_much(f"more than {MAX_STACKS:,} distinct stacks", line=line)
            if len(self._places) + len(places) > MAX_PLACES:
                raise _too_much(f"more than {MAX_PLACES:,} frames in its stacks", line=line)
            number = self._stacks[key] = len(self._stacks)
            self._places.extend(places)
            self._lengths.append(len(places))
            self._weights.append(0.0)
        self._weights[number] += weight
        return number

    def seen(self, number: int, begin_s: float, end_s: float, weight: float) -> None:
        """Say when a stack was seen, in seconds of one clock of the file; a sample is one moment.

        `weight` is how much of the stack's, in the profile's unit.
        """
        if number >= 0 and -math.inf < begin_s <= end_s < math.inf and len(self._seen) < MAX_SEEN:
            self._seen.append(number)
            self._spans.extend((begin_s, end_s, weight))

    def profile(self, about: About) -> Profile:
        """All that was added. ParseError: nothing was."""
        if not self._stacks:
            raise ParseError(
                "there is no sample in the profile",
                hint="Was the profiled process busy, and was it the right one? Give the whole file.",
            )
        edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._lengths, dtype=np.int64)])
        places = np.frombuffer(self._places, np.int32)
        weights = np.array(self._weights, np.float64)
        return Profile(about, tuple(self._frames), edges, places, weights, self._slices(weights))

    def frames(self) -> tuple[Frame, ...]:
        """The frames in the order of their indexes."""
        return tuple(self._frames)

    def moments(self) -> Iterator[tuple[Sequence[int], float, Weights, Weights]]:
        """Each stack, its weight, and where the times of all of it are known: the moments, in seconds, with their
        weights."""
        seen = np.array(self._seen, np.int32)
        spans = np.array(self._spans, np.float64).reshape(-1, 3)
        order = np.argsort(seen, kind="stable")
        edges = np.searchsorted(seen[order], np.arange(len(self._weights) + 1))
        begin = 0
        for number, (length, weight) in enumerate(zip(self._lengths, self._weights, strict=True)):
            own = spans[order[edges[number] : edges[number + 1]]]
            known = len(own) and np.isclose(own[:, 2].sum(), weight)
            yield self._places[begin : begin + length], weight, *((own[:, 0], own[:, 2]) if known else (_NONE, _NONE))
            begin += length

    def _slices(self, weights: Weights) -> Slices | None:
        """None unless the time of every stack's whole weight is known: some of the samples say nothing of a moment."""
        spans = np.array(self._spans, np.float64).reshape(-1, 3)
        stacks = np.array(self._seen, np.int32)
        if not np.allclose(np.bincount(stacks, spans[:, 2], len(weights)), weights):
            return None
        return sliced(stacks, spans[:, 0], spans[:, 1], spans[:, 2])


def not_larger(size: int, limit: int = MAX_BYTES) -> None:
    """Refuse a file of more bytes than are read. Raises ParseError."""
    if size > limit:
        raise _too_much(f"more than {limit // 1_000_000} MB")


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + CUT


def _too_much(what: str, *, line: int | None = None) -> ParseError:
    return ParseError(
        f"the profile has {what}, which is more than is read",
        hint="Profile for a shorter time, at a longer interval, or fold it first (collapsed stacks).",
        line=line,
    )
