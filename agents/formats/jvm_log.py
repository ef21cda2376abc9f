"""What a HotSpot JVM's own log tells over time: heap after each collection, allocation, and stops at safepoints.

The lines are those of `-Xlog:gc*,safepoint` (`agents.formats.gc_log`), of Java 9 and later: Serial, Parallel, G1,
Shenandoah and ZGC. Sizes are whole megabytes there, so what is allocated is known between collections and never finer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

LEAST_KNOWN_S = 0.5
"""Of a second so much has to be known before its rate is told: of what is allocated while a collection runs beside the
program the log says nothing here."""

LONGEST_S = 2 * 86_400.0
"""How far before its end a log is read: what a clock that was set, or a wrong date, puts further back is left out."""

Points = tuple[tuple[float, ...], tuple[float, ...]]
"""When, in seconds of the host's clock since 1970, and what."""

_AT = r"^\[([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{3}\+0000)\]\[info *\]"
_SIZE = r"([0-9]{1,9})([KMG])"
_COLLECTION = re.compile(
    rf"{_AT}\[gc *\] GC\(([0-9]{{1,10}})\) (.{{1,200}}?) {_SIZE}(?:\([0-9]+%\))?->{_SIZE}"
    r"\([0-9]+[KMG%]\)(?: ([0-9]{1,9}\.[0-9]{1,6})(ms|s))?$",
    re.ASCII | re.MULTILINE,
)
_BEGUN = re.compile(
    rf"{_AT}\[gc,start *\] GC\(([0-9]{{1,10}})\) Garbage Collection \([^()]{{1,100}}\)$", re.ASCII | re.MULTILINE
)
# From Java 13 on, and before.
_SAFEPOINT = re.compile(
    rf'{_AT}\[safepoint *\] Safepoint "[^"]{{1,100}}", .{{0,60}}?'
    r"Reaching safepoint: ([0-9]{1,18}) ns, .{0,120}?Total: ([0-9]{1,18}) ns$",
    re.ASCII | re.MULTILINE,
)
_STOPPED = re.compile(
    rf"{_AT}\[safepoint *\] Total time for which application threads were stopped: "
    r"([0-9]{1,9}\.[0-9]{1,9}) seconds, Stopping threads took: ([0-9]{1,9}\.[0-9]{1,9}) seconds$",
    re.ASCII | re.MULTILINE,
)
_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_NOT_AFTER = ("Pause Remark", "Pause Cleanup")
"""Parts of G1's cycle that say how full the heap is while nothing has been collected yet."""


@dataclass(frozen=True)
class Collection:
    """The heap in use when a collection began and when it had ended; `stops`: nobody could allocate in between."""

    what: str
    begin_s: float
    end_s: float
    before_bytes: int
    after_bytes: int
    stops: bool


@dataclass(frozen=True)
class Safepoint:
    """A stop of all threads until `end_s`: `total_s` long, and `reaching_s` of it until the last thread had stopped."""

    end_s: float
    total_s: float
    reaching_s: float


def read_collections(text: str) -> list[Collection]:
    """The collections in the order of their ends, times in seconds since 1970, sizes in bytes."""
    begun = {number: at_s for at, number in _BEGUN.findall(text) if (at_s := unix_s(at)) is not None}
    found = []
    for at, number, what, before, unit_b, after, unit_a, took, unit in _COLLECTION.findall(text):
        if (end_s := unix_s(at)) is None:
            continue
        begin_s = end_s - float(took) / (1000 if unit == "ms" else 1) if took else begun.get(number, end_s)
        sizes = int(before) * _BYTES[unit_b], int(after) * _BYTES[unit_a]
        found.append(Collection(what, begin_s, end_s, *sizes, stops=what.startswith("Pause ")))
    return sorted(found, key=lambda one: one.end_s)


def read_safepoints(text: str) -> list[Safepoint]:
    """The stops in the order of their ends; times in seconds, the ends since 1970."""
    told = [(at, int(total) / 1e9, int(reach) / 1e9) for at, reach, total in _SAFEPOINT.findall(text)]
    told += [(at, float(total), float(reach)) for at, total, reach in _STOPPED.findall(text)]
    found = [Safepoint(end_s, total, reach) for at, total, reach in told if (end_s := unix_s(at)) is not None]
    return sorted(found, key=lambda one: one.end_s)


def course_of(text: str) -> dict[str, Points]:
    """Channel -> its points: heap after each collection as it ended, the others for the second that ends with a point.

    Bytes, bytes per second, ratios of a second, stops per second. What the log does not tell is absent. Allocated is
    what the heap grew by from the end of a collection to the beginning of the next one.
    """
    collections, safepoints = read_collections(text), read_safepoints(text)
    ends_s = [one.end_s for one in collections] + [one.end_s for one in safepoints]
    since_s = max(ends_s, default=0.0) - LONGEST_S
    collections = [one for one in collections if one.begin_s >= since_s]
    safepoints = [one for one in safepoints if one.end_s - one.total_s >= since_s]
    after = [one for one in collections if not one.what.startswith(_NOT_AFTER)]
    stops = [(one.end_s - one.total_s, one.end_s, one.total_s) for one in safepoints]
    reaching = [
        (one.end_s - one.total_s, one.end_s - one.total_s + one.reaching_s, one.reaching_s)
        for one in safepoints
        if one.reaching_s <= one.total_s  # else the line is damaged, and the time in it may be centuries
    ]
    counts = [(one.end_s, one.end_s, 1.0) for one in safepoints]
    whole = (safepoints[0].end_s, safepoints[-1].end_s) if safepoints else None
    course = {
        "heap_after_gc_bytes": (
            tuple(round(one.end_s, 3) for one in after),
            tuple(float(one.after_bytes) for one in after),
        ),
        "allocated_bytes_per_s": _rates(list(_allocated(collections))),
        "safepoints_per_s": _rates(counts, whole),
        "stopped_ratio": _rates(stops, whole),
        "reaching_safepoint_ratio": _rates(reaching, whole),
    }
    return {channel: points for channel, points in course.items() if points[0]}


def _allocated(collections: Sequence[Collection]) -> Iterator[tuple[float, float, float]]:
    """From, to, and the bytes allocated in between, where that is known."""
    for last, one in pairwise(collections):
        if one.begin_s > last.end_s:
            yield last.end_s, one.begin_s, max(0.0, float(one.before_bytes - last.after_bytes))
        if one.stops and one.end_s > one.begin_s >= last.end_s:
            yield one.begin_s, one.end_s, 0.0


def _rates(pieces: Sequence[tuple[float, float, float]], whole: tuple[float, float] | None = None) -> Points:
    """The amounts of `pieces`, each spread evenly from its beginning to its end, per known second.

    Known are the pieces alone, or all of `whole`: there a second without a piece has 0.
    """
    amounts: dict[int, float] = {}
    known: dict[int, float] = dict(_seconds(*whole)) if whole is not None else {}
    for begin_s, end_s, amount in pieces:
        for second, share_s in _seconds(begin_s, end_s):
            part = share_s / (end_s - begin_s) if end_s > begin_s else 1.0
            amounts[second] = amounts.get(second, 0.0) + amount * part
            if whole is None:
                known[second] = known.get(second, 0.0) + share_s
    told = sorted(second for second, share_s in known.items() if share_s >= LEAST_KNOWN_S)
    return tuple(float(one + 1) for one in told), tuple(amounts.get(one, 0.0) / known[one] for one in told)


def _seconds(begin_s: float, end_s: float) -> Iterator[tuple[int, float]]:
    """The whole seconds that the time from `begin_s` to `end_s` touches, each with how much of it."""
    for second in range(math.floor(begin_s), max(math.floor(begin_s) + 1, math.ceil(end_s))):
        yield second, min(end_s, second + 1) - max(begin_s, second)


def unix_s(text: str) -> float | None:
    """Seconds since 1970; None for a moment that no calendar has."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def named(course: Mapping[str, Points], instance: int, instances: int) -> dict[str, Points]:
    """The course under the names of channels: jvm.X, or jvm.2.X for the second of several instances."""
    prefix = "jvm." if instances == 1 else f"jvm.{instance + 1}."
    return {prefix + channel: points for channel, points in course.items()}
