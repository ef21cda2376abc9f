"""Operations of the REST API, asked in this process as whoever called the tool.

One way to do a thing: scope, role, team, budget and the words of an error are the API's own.
"""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from experiments.api.plumbing.auth import Caller

_TAKEN_OVER = ("HTTP_AUTHORIZATION", "HTTP_HOST", "REMOTE_ADDR", "SERVER_NAME", "SERVER_PORT")
_SCHEME = "wsgi.url_scheme"
PAGE = 1000
MOST_PAGES = 10
"""Of one list: an assistant waits for its answer, and each page is a request of its budget."""


class Refused(Exception):
    """What the API said instead of an answer; `status` is that of HTTP."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Rows:
    """Rows of a list, in its order. `are_all` False = there are more, which nobody looked at."""

    found: list[dict[str, Any]]
    are_all: bool

    def looked_at(self, what: str) -> dict[str, str]:
        """What an answer says of a list that was not read to its end; nothing of one that was."""
        return {} if self.are_all else {"looked_at": f"the first {len(self.found):,} {what}; there are more"}


@dataclass(frozen=True)
class Api:
    """The API as one caller sees it. `request` is the one that called the tool."""

    request: HttpRequest
    caller: Caller

    @property
    def team(self) -> str:
        """The slug of the caller's team."""
        return self.caller.member.team.slug

    async def get(self, path: str, **query: Any) -> Any:
        """What `GET /api/v1{path}` answers; without what is None or empty. Refused with the API's own words."""
        given = {name: value for name, value in query.items() if value not in (None, "", [])}
        return await self._ask("GET", path, urlencode(given, doseq=True), b"", {})

    async def rows(self, path: str, **query: Any) -> Rows:
        """The rows of a list that is an array, page by page to its end, at most `MOST_PAGES` of them."""
        found: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            page = await self.get(path, **query, limit=PAGE, cursor=len(found))
            found += page
            if len(page) < PAGE:
                return Rows(found, are_all=True)
        more = await self.get(path, **query, limit=1, cursor=len(found))
        return Rows(found, are_all=not more)

    async def post(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        """What `POST /api/v1{path}` answers; `key` makes that it starts nothing twice. Refused as in `get`."""
        headers = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
        return await self._ask("POST", path, "", json.dumps(body).encode(), headers)

    async def _ask(self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]) -> Any:
        path = f"/api/v1{path}"
        asked = WSGIRequest(
            {
                **{name: self.request.META[name] for name in _TAKEN_OVER if name in self.request.META},
                **headers,
                _SCHEME: self.request.scheme,
                "REQUEST_METHOD": method,
                "PATH_INFO": path.encode().decode("latin-1"),  # as WSGI has it
                "QUERY_STRING": query,
                "CONTENT_TYPE": "application/json",
                "CONTENT_LENGTH": str(len(body)),
                "wsgi.input": io.BytesIO(body),
            }
        )
        found = resolve(path)
        view = found.func if inspect.iscoroutinefunction(found.func) else sync_to_async(found.func)
        answer = cast(HttpResponse, await view(asked, *found.args, **found.kwargs))
        said = json.loads(answer.content)
        if answer.status_code >= 400:
            field = f" (field: {said['field']})" if said.get("field") else ""
            raise Refused(f"{said['detail']}{field}", answer.status_code)
        return said
