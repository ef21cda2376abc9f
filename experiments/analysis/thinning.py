"""Fewer points for a chart, without losing a peak."""

from __future__ import annotations

from collections.abc import Sequence

MAX_POINTS = 2000


def thinned(at_s: Sequence[float], values: Sequence[float], most: int = MAX_POINTS) -> tuple[list[float], list[float]]:
    """At most `most` points: of each stretch its lowest and its highest value, so that no peak is lost.

    Arithmetic: `at_s` and `values` are of one length; what comes back are times in seconds, and values in their unit.
    """
    if len(values) <= most:
        return list(at_s), list(values)
    size = -(-2 * len(values) // most)
    kept: list[int] = []
    for start in range(0, len(values), size):
        stretch = range(start, min(start + size, len(values)))
        kept.extend(sorted({min(stretch, key=values.__getitem__), max(stretch, key=values.__getitem__)}))
    return [at_s[index] for index in kept], [values[index] for index in kept]
