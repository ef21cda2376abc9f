"""ETag and If-Match: a client reads what it knows already for free, and never overwrites what it has not seen."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel

from experiments.api.plumbing.rendering import rendered

_TAG = re.compile(r'(?:W/)?"[^"]*"')
_MAX_HEADER = 2000

READ_EXTRA: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": "If-None-Match",
            "required": False,
            "schema": {"type": "string"},
            "description": "The ETag of what you have: 304 when nothing has changed",
        }
    ],
    "responses": {304: {"description": "Not Modified"}},
}
"""For the schema of an operation that answers with `tagged`."""
CHANGE_EXTRA: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": "If-Match",
            "required": False,
            "schema": {"type": "string"},
            "description": "The ETag of what you have seen: 412 when somebody has changed it since",
        }
    ],
}
"""For the schema of an operation that calls `insist_on_match`."""


class PreconditionFailed(Exception):
    """The object is not what the client believes it to be, as the header `field` says."""

    def __init__(self, message: str, *, field: str = "If-Match") -> None:
        super().__init__(message)
        self.field = field


def etag_of(value: BaseModel) -> str:
    """The strong ETag of an answer: another one whenever a byte of it differs."""
    return f'"{hashlib.sha256(_rendered(value)).hexdigest()[:32]}"'


def tagged(request: HttpRequest, value: BaseModel, status: int = 200) -> HttpResponse:
    """The answer with its ETag, or 304 without a body when a GET names that tag in If-None-Match."""
    tag = etag_of(value)
    if request.method == "GET" and _names(request.headers.get("If-None-Match"), tag, weak=True):
        response = HttpResponse(status=304)
        del response["Content-Type"]
    else:
        response = HttpResponse(_rendered(value), status=status, content_type="application/json; charset=utf-8")
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    return response


def insist_on_match(request: HttpRequest, current: BaseModel | None) -> None:
    """PreconditionFailed when If-Match names another state than `current` (None = it does not exist).

    `If-None-Match: *` wants that it does not exist yet. Call it where nobody else can change the object any more.
    """
    wanted = request.headers.get("If-Match")
    if wanted is not None:
        if current is None:
            raise PreconditionFailed("There is nothing that could match If-Match.")
        if not _names(wanted, etag_of(current), weak=False):
            raise PreconditionFailed("It has changed since you read it; read it again and repeat the change on that.")
    if current is not None and request.headers.get("If-None-Match", "").strip() == "*":
        raise PreconditionFailed("It exists already.", field="If-None-Match")


def _names(header: str | None, tag: str, *, weak: bool) -> bool:
    if header is None or len(header) > _MAX_HEADER:
        return False
    if header.strip() == "*":
        return True
    found = _TAG.findall(header)
    return tag in found or (weak and f"W/{tag}" in found)


def _rendered(value: BaseModel) -> bytes:
    return rendered(value.model_dump())
