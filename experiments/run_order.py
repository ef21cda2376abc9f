"""The orders that the list of runs can have."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from experiments.errors import RequestError

SORTS = ("number", "throughput_rps", "latency_p99_ms", "finished_at")


def sort_key(sort: str) -> tuple[str, bool]:
    """(field, descending) of a sort such as "-throughput_rps"."""
    key = sort.removeprefix("-")
    if key not in SORTS:
        raise RequestError(f"Runs can be sorted by {', '.join(SORTS)}, with a - in front for descending.", field="sort")
    return key, sort.startswith("-")


def ordering(key: str, descending: bool, *, backwards: bool = False) -> list[Any]:
    """Order by the key, nulls last, then by the number in the same direction; `backwards` is the exact reverse."""
    down = descending != backwards
    number = F("number").desc() if down else F("number").asc()
    if key == "number":
        return [number]
    nulls = {"nulls_first": True} if backwards else {"nulls_last": True}
    return [F(key).desc(**nulls) if down else F(key).asc(**nulls), number]
