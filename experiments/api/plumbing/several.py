"""Several values of one parameter, with commas between: `state__in=ready,dirty`."""

from __future__ import annotations

from collections.abc import Collection

from experiments.registry.errors import RequestError


def several(text: str, field: str, known: Collection[str] = ()) -> list[str]:
    """The values in `text`. RequestError names the first one that is not among `known`, where these are given."""
    values = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [value for value in values if known and value not in known]
    if unknown:
        raise RequestError(f"There is no {unknown[0][:60]!r}; known: {', '.join(known)}.", field=field)
    return values
