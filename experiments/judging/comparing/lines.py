"""Which points of a history are one line of its chart: what was measured the same way, night after night."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from experiments.judging.comparing.history import Point


def line_names(points: Sequence[Point], *, unnamed: str) -> list[str]:
    """The line of each point: its recipe (or `unnamed`), and its parameters as far as they are not the defaults.

    Two variants of one experiment are never one line: where they share both, each has its own name as well.
    """
    names = [" · ".join(filter(None, (point.recipe or unnamed, point.variation))) for point in points]
    variants: dict[tuple[str, int], set[str]] = defaultdict(set)
    for name, point in zip(names, points, strict=True):
        if point.experiment_id is not None:
            variants[name, point.experiment_id].add(point.variant)
    shared = {name for (name, _), of_one in variants.items() if len(of_one) > 1}
    return [
        f"{name} · {point.variant}" if name in shared and point.variant else name
        for name, point in zip(names, points, strict=True)
    ]
