"""One way through every list: `limit` and `cursor`, and in the header Link the address where it goes on (RFC 8288)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.encoding import escape_uri_path
from ninja.params.functions import Query
from ninja.utils import contribute_operation_args

MAX_ROWS = 1000
"""Of an answer that is a list: as many as there are unless a team has very many, so that nobody has to ask twice."""
_MAX_PLACE = 2**31 - 1
CURSOR: Any = Query(0, ge=0, le=_MAX_PLACE, description="Leave out so many; the header Link has the next one")
LIMIT: Any = Query(MAX_ROWS, ge=1, le=MAX_ROWS)

P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


def tell_page(request: HttpRequest, cursor: str | int, *, rel: str = "next", name: str = "cursor") -> None:
    """Let the answer say where the list goes on (`next`) or what stands before it (`prev`); no cursor, no word."""
    if cursor != "":
        known = getattr(request, "benchhub_pages", {})
        request.benchhub_pages = {**known, rel: (name, str(cursor))}  # type: ignore[attr-defined]


def tell_pages_of(request: HttpRequest, page: Any) -> None:
    """The same by the cursors that a page carries in its body."""
    said = page if isinstance(page, dict) else vars(page)
    tell_page(request, said.get("next_cursor") or "")
    tell_page(request, said.get("previous_cursor") or "", rel="prev")


def link_pages(request: HttpRequest, response: HttpResponseBase) -> None:
    """Write the header Link: whole addresses, with all that was asked for."""
    links = []
    for rel, (name, cursor) in getattr(request, "benchhub_pages", {}).items():
        query = request.GET.copy()
        query[name] = cursor
        links.append(f'<{request.build_absolute_uri(escape_uri_path(request.path))}?{query.urlencode()}>; rel="{rel}"')
    if links and response.status_code == 200:
        response["Link"] = ", ".join(links)


def rows_of_page(request: HttpRequest, rows: Sequence[T], cursor: int, limit: int) -> list[T]:
    """Those that this page has, of all rows in their order."""
    if cursor + limit < len(rows):
        tell_page(request, cursor + limit)
    return list(rows[cursor : cursor + limit])


def query_of_page(request: HttpRequest, rows: QuerySet[Row], cursor: int, limit: int) -> QuerySet[Row]:
    """The same of rows that are too big to be read before they are chosen."""
    if cursor + limit < rows.count():
        tell_page(request, cursor + limit)
    return rows[cursor : cursor + limit]


def paged(
    operation: Callable[Concatenate[HttpRequest, P], list[T]],
) -> Callable[Concatenate[HttpRequest, P], list[T]]:
    """Give an operation that answers with all rows the parameters `cursor` and `limit`."""

    @wraps(operation)
    def page(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> list[T]:
        cursor, limit = cast(int, kwargs.pop("cursor", 0)), cast(int, kwargs.pop("limit", MAX_ROWS))
        return rows_of_page(request, operation(request, *args, **kwargs), cursor, limit)

    # Resolved here: ninja would look the names up in this module.
    page.__signature__ = inspect.signature(operation, eval_str=True)  # type: ignore[attr-defined]
    contribute_operation_args(page, "cursor", int, CURSOR)
    contribute_operation_args(page, "limit", int, LIMIT)
    return cast(Callable[Concatenate[HttpRequest, P], list[T]], page)
