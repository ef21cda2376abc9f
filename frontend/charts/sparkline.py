"""A line small enough for a table cell, drawn as SVG by the server."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH = 120
HEIGHT = 28
EDGE = 2


def points_of(values: Sequence[float]) -> str:
    """The `points` of an SVG polyline that fills a 120 x 28 box."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = (WIDTH - 2 * EDGE) / (len(values) - 1)
    return " ".join(
        f"{EDGE + index * step:.1f},{HEIGHT - EDGE - (value - low) / span * (HEIGHT - 2 * EDGE):.1f}"
        for index, value in enumerate(values)
    )
