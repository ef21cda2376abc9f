"""Collapsed stacks: `root;caller;leaf 12` in each line, the tongue that all profilers speak.

The form is that of Brendan Gregg's FlameGraph (stackcollapse-perf.pl); py-spy calls it raw. Frames keep the names that
they have in the text, with the line numbers of py-spy and the marks of async-profiler (`_[k]`).
"""

from __future__ import annotations

import re
from io import BytesIO

import numpy as np

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_BYTES, Folding, not_larger
from agents.profiles.base.profile import UNKNOWN, About, Frame, Profile
from agents.profiles.base.profile_format import HEAD_BYTES, ProfileFormat

_COUNT = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NOT_IN_A_NAME = re.compile(r"[;\x00-\x1f\x7f\x85\u2028\u2029]")


def looks_like(head: bytes) -> bool:
    """Whether the first line that has something in it is a stack with its count, or the beginning of a long stack."""
    first, whole, _ = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n\t ").partition(b"\n")
    if not first or _CONTROL.search(first.rstrip(b"\r")) or first.startswith(b"{"):
        return False
    if not whole and len(head) >= HEAD_BYTES:
        return b";" in first
    stack, _, count = first.rstrip(b"\r\t ").rpartition(b" ")
    return bool(stack) and _COUNT.fullmatch(count.decode("utf-8", "replace")) is not None


def read(data: bytes) -> Profile:
    """The profile of collapsed stacks of any tool; `about` says the unit only. ParseError names the line."""
    not_larger(len(data), MAX_BYTES)
    folding = Folding()
    frames: dict[str, int] = {}
    whole = True
    for number, raw in enumerate(BytesIO(data.removeprefix(b"\xef\xbb\xbf")), start=1):
        text = raw.decode("utf-8", "replace").strip("\r\n\t ")
        if not text:
            continue
        stack, _, count = text.rpartition(" ")
        if not stack or not _COUNT.fullmatch(count):
            raise ParseError(
                f"line {number} is no stack with its count: {text[:60]!r}",
                hint="Each line is frames between semicolons, a blank, and a number.",
                line=number,
            )
        indexes = []
        for name in stack.split(";"):
            if (index := frames.get(name)) is None:
                index = frames[name] = folding.frame(name)
            indexes.append(index)
        whole = whole and "." not in count
        folding.add(indexes, float(count), line=number)
    profile = folding.profile(About("samples"))
    return profile if not whole else _counted(profile)


def write(profile: Profile) -> bytes:
    """The profile as collapsed stacks, heaviest first; what cannot stand in a name there becomes a colon."""
    labels: dict[str, int] = {}
    for frame in profile.frames:
        labels.setdefault(_label(frame), len(labels))
    of_frame = np.array([labels[_label(frame)] for frame in profile.frames], np.int32)
    weights: dict[bytes, float] = {}  # of the same labels; the texts themselves would take some times the memory
    for at, weight in enumerate(profile.weights.tolist()):
        stack = of_frame[profile.places[profile.edges[at] : profile.edges[at + 1]]].tobytes()
        weights[stack] = weights.get(stack, 0.0) + weight
    names = [label.encode("utf-8", "replace") for label in labels]
    written = BytesIO()
    for stack in sorted(weights, key=lambda stack: -weights[stack]):
        text = b";".join([names[label] for label in np.frombuffer(stack, np.int32).tolist()])
        written.write(b"%b %b\n" % (text, _number(weights[stack]).encode()))
    return written.getvalue()


def _label(frame: Frame) -> str:
    return _NOT_IN_A_NAME.sub(":", frame.label).strip(" ") or UNKNOWN


def _counted(profile: Profile) -> Profile:
    about = About("samples", samples=round(profile.weight))
    return Profile(about, profile.frames, profile.edges, profile.places, profile.weights)


def _number(weight: float) -> str:
    text = f"{weight:.9f}".rstrip("0").rstrip(".")
    return text if text != "0" else "0.000000001"


COLLAPSED = ProfileFormat("collapsed", "Collapsed stacks, py-spy raw", looks_like, read, ".collapsed.txt", write)
