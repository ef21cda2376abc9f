"""Several values of one parameter, with commas between: `state__in=ready,dirty`."""

from __future__ import annotations

from collections.abc import Collection

from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import parts_of


def several(text: str, field: str, known: Collection[str] = ()) -> list[str]:
    """The values in `text`. RequestError names the first one that is not among `known`, where these are given."""
    values = parts_of(text, field)
    unknown = [value for value in values if known and value not in known]
    if unknown:
        raise RequestError(f"There is no {unknown[0][:60]!r}; known: {', '.join(known)}.", field=field)
    return values
