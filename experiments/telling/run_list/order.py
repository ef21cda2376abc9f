"""The orders that the list of runs can have."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from experiments.registry.errors import RequestError

SORTS = ("number", "throughput_rps", "latency_p99_ms", "finished_at")


def sort_key(sort: str) -> tuple[str, bool]:
    """(field, descending) of a sort such as "-throughput_rps"."""
    key = sort.removeprefix("-")
    if key not in SORTS:
        raise RequestError(f"Runs can be sorted by {', '.join(SORTS)}, with a - in front for descending.", field="sort")
    return key, sort.startswith("-")


def ordering(key: str, descending: bool) -> list[Any]:
    """Order by the key, then by the number in the same direction. Where runs without the figure go is not said."""
    return [F(name).desc() if descending else F(name).asc() for name in dict.fromkeys((key, "number"))]


def whole_ordering(key: str, descending: bool) -> list[Any]:
    """The order of the whole list in one go: runs without the figure come last."""
    last = F(key).desc(nulls_last=True) if descending else F(key).asc(nulls_last=True)
    return [last, *ordering("number", descending)]
