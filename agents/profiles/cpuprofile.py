"""The `.cpuprofile` of V8: Node.js (`node --cpu-prof`), Chrome, Deno. A call tree whose nodes were hit.

Source: Profiler.Profile of the Chrome DevTools protocol. Time in `(idle)` is no CPU time and is left out. Each sample
counts the same: V8 samples a thread by wall clock, and what a late sample stands for was seldom all its function's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from pydantic import Field

from agents.base.errors import ParseError
from agents.profiles.base.folding import MAX_DEPTH, Folding
from agents.profiles.base.json_profile import Outside, load
from agents.profiles.base.profile import About, Profile
from agents.profiles.base.profile_format import ProfileFormat

IDLE = "(idle)"
ROOT = "(root)"
ANONYMOUS = "(anonymous)"
_MOST = 10**15


class _CallFrame(Outside):
    functionName: str  # noqa: N815  # the document's own names
    url: str = ""


class _Node(Outside):
    id: int = Field(ge=0, le=_MOST)
    callFrame: _CallFrame  # noqa: N815
    hitCount: int = Field(default=0, ge=0, le=_MOST)  # noqa: N815
    children: list[int] = []


class _Document(Outside):
    nodes: list[_Node] = Field(min_length=1)
    samples: list[int] | None = None
    startTime: float = 0.0  # noqa: N815
    timeDeltas: list[float] | None = None  # noqa: N815


def looks_like(head: bytes) -> bool:
    """Whether it is a JSON object with nodes that have V8's call frames."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"callFrame"' in head


def read(data: bytes) -> Profile:
    """The profile of a file of V8, idle time left out. ParseError: it is none, or its nodes are no tree."""
    document = load(_Document, data, "V8")
    nodes = {node.id: node for node in document.nodes}
    if len(nodes) < len(document.nodes):
        raise ParseError("two nodes of the profile have the same id", hint="Give the file as V8 wrote it.")
    hits = {node.id: node.hitCount for node in document.nodes}
    if document.samples is not None:
        hits = dict(Counter(document.samples))
        unknown = [one for one in hits if one not in nodes]
        if unknown:
            raise ParseError(f"a sample is of node {unknown[0]}, which is not there", hint="Give the whole file.")
    parents = _parents(nodes)
    folding = Folding()
    frames = {one: _frame(folding, node.callFrame) for one, node in nodes.items()}
    samples = 0
    numbers: dict[int, int] = {}
    for one, count in hits.items():
        if count and nodes[one].callFrame.functionName != IDLE:
            samples += count
            numbers[one] = folding.add(_stack(one, parents, nodes, frames), count)
    for one, at_s in _timed(document):
        if one in numbers:
            folding.seen(numbers[one], at_s, at_s, 1)
    return folding.profile(About("samples", "cpu", "v8", None, samples))


def _timed(document: _Document) -> Iterator[tuple[int, float]]:
    """The node of each sample and when it was taken, in seconds of V8's clock; none where the file does not say it."""
    samples, deltas = document.samples, document.timeDeltas
    if samples is None or deltas is None or len(samples) != len(deltas):
        return iter(())
    ends_us = accumulate(deltas, initial=document.startTime)
    next(ends_us)
    return ((one, at_us / 1e6) for one, at_us in zip(samples, ends_us, strict=True))


def _frame(folding: Folding, seen: _CallFrame) -> int:
    return folding.frame(seen.functionName or ANONYMOUS, seen.url)


def _parents(nodes: dict[int, _Node]) -> dict[int, int]:
    """The parent of each node but the root. ParseError: the children are no tree."""
    parents: dict[int, int] = {}
    for one, node in nodes.items():
        for child in node.children:
            if child not in nodes or child in parents:
                raise ParseError(
                    f"node {child} of the profile is missing or has two parents", hint="Give the file as V8 wrote it."
                )
            parents[child] = one
    return parents


def _stack(leaf: int, parents: dict[int, int], nodes: dict[int, _Node], frames: dict[int, int]) -> list[int]:
    """The frames from below the root to a node; a circle of nodes is the deepest stack of all."""
    stack, at = [frames[leaf]], leaf
    while at in parents:
        at = parents[at]
        if at in parents or nodes[at].callFrame.functionName != ROOT:
            stack.append(frames[at])
        if len(stack) > MAX_DEPTH:
            raise ParseError(
                f"a stack of the profile has more than {MAX_DEPTH:,} frames, or its nodes go round in a circle",
                hint="Give the file as V8 wrote it.",
            )
    return stack[::-1]


CPUPROFILE = ProfileFormat("cpuprofile", "V8 .cpuprofile (Node.js, Chrome)", looks_like, read, ".cpuprofile")
