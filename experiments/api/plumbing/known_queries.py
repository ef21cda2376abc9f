"""Query parameters that an operation does not have are refused: one that is misspelt would otherwise do nothing.

So is one that holds a single value and is given twice: all but the last would be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any, cast

from django.http import HttpRequest
from ninja.operation import Operation

from experiments.registry.errors import RequestError

EVERYWHERE = frozenset({"team"})
"""Sessions name their team with it, at every address."""
_SHOWN_CHARACTERS = 60

Operates = Callable[..., Any]


def only_known_queries(operates: Operates) -> Operates:
    """The function of an operation, which refuses unknown and repeated query parameters once it is known who asks."""
    models = _query_models(cast(Operation, operates._ninja_operation))  # type: ignore[attr-defined]
    known = sorted({name for model in models for name in model.__ninja_flatten_map__})
    repeatable = {name for model in models for name in model.__ninja_collection_fields__}
    accepted = EVERYWHERE.union(known)

    @wraps(operates)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        for name, values in request.GET.lists():
            if name not in accepted:
                shown = name[:_SHOWN_CHARACTERS]
                near = get_close_matches(shown, known, n=1)
                hint = f"did you mean {near[0]}? Known" if near else "known"
                there = f"{hint}: {', '.join(known)}" if known else "it takes none"
                raise RequestError(f"There is no query parameter {shown!r} here; {there}.", field=shown)
            if len(values) > 1 and name not in repeatable:
                several = "; commas separate several" if name.endswith("__in") else ""
                raise RequestError(f"{name} is given {len(values)} times, and holds one value{several}.", field=name)
        return operates(request, *args, **kwargs)

    return checked


def _query_models(operation: Operation) -> list[Any]:
    return [model for model in operation.models if str(model.__ninja_param_source__) == "query"]
