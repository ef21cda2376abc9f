"""Keyset paging: a page after or before a cursor, by any of the orders that the list of runs can have."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Q, QuerySet

from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import parse_time
from experiments.telling.run_list.order import ordering, sort_key

MAX_LIMIT = 200

Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of rows; a cursor is empty when there is nothing further in its direction."""

    rows: tuple[Row, ...]
    next_cursor: str
    previous_cursor: str


@dataclass(frozen=True)
class _Position:
    """A place in the list: beside the run with this sort value and number."""

    value: float | str | None
    number: int
    backwards: bool


def page_of(runs: QuerySet[Any, Row], *, sort: str, cursor: str, limit: int) -> Page[Row]:
    """The rows after (or before) `cursor`; each has a number and the field that the list is sorted by.

    No OFFSET, no COUNT; runs without the sorted figure come last, stably.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise RequestError(f"The limit must be between 1 and {MAX_LIMIT}.", field="limit")
    key, descending = sort_key(sort)
    position = _decode(cursor, sort) if cursor else None
    backwards = position is not None and position.backwards
    query = runs.order_by(*ordering(key, descending != backwards))
    found: list[Row] = []
    for stretch in _stretches(key, descending, position):
        if len(found) <= limit:
            found += query.filter(stretch)[: limit + 1 - len(found)]
    more = len(found) > limit
    rows = found[:limit]
    if backwards:
        rows.reverse()
    if not rows:
        return Page((), "", "")
    has_next = more if not backwards else True
    has_previous = more if backwards else position is not None
    return Page(
        tuple(rows),
        cursor_after(rows[-1], sort) if has_next else "",
        cursor_after(rows[0], sort, backwards=True) if has_previous else "",
    )


def _stretches(key: str, descending: bool, position: _Position | None) -> tuple[Q, ...]:
    """The list from `position` on in one or two stretches, to be read in turn: runs with the figure, runs without it.

    They are apart because PostgreSQL finds no index for both at once, and would sort every run of the team.
    """
    if position is None:
        return (Q(),) if key == "number" else (Q(**{f"{key}__isnull": False}), Q(**{f"{key}__isnull": True}))
    further = "lt" if descending != position.backwards else "gt"
    by_number = Q(**{f"number__{further}": position.number})
    if key == "number":
        return (by_number,)
    absent = Q(**{f"{key}__isnull": True})
    if position.value is None:
        return (absent & by_number, ~absent) if position.backwards else (absent & by_number,)
    # The first condition says no more than the second, but it is the one that an index can look up.
    bound = Q(**{f"{key}__{further}e": position.value})
    beyond = bound & (Q(**{f"{key}__{further}": position.value}) | by_number)
    return (beyond,) if position.backwards else (beyond, absent)


def cursor_after(run: Any, sort: str, *, backwards: bool = False) -> str:
    """The cursor of the page that begins after this run, or ends before it."""
    key, _ = sort_key(sort)
    value = getattr(run, key)
    text = value.isoformat() if key == "finished_at" and value is not None else value
    data = json.dumps([sort, text, run.number, backwards], separators=(",", ":"))
    return base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")


def _decode(cursor: str, sort: str) -> _Position:
    problem = RequestError("The cursor is not of this list; leave it out to begin at the start.", field="cursor")
    try:
        data = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise problem from error
    match data:
        case [str(said), value, int(number), bool(backwards)] if said == sort and 0 <= number < 2**31:
            pass
        case _:
            raise problem
    key, _ = sort_key(sort)
    if value is None:
        checked: float | str | None = None
    elif key == "finished_at" and isinstance(value, str):
        checked = parse_time(value, "cursor").isoformat()
    elif key != "finished_at" and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            checked = float(value)
        except OverflowError as error:
            raise problem from error
    else:
        raise problem
    return _Position(checked, number, backwards)
