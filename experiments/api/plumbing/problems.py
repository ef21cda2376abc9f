"""Errors as problem+json, in one place. What is not yours and what does not exist give the same answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import HttpError
from ninja.errors import ValidationError as RequestValidationError
from pydantic import BaseModel

from agents.base.model import as_written
from experiments.api.plumbing.body import BodyError
from experiments.api.plumbing.conditional import PreconditionFailed
from experiments.api.plumbing.limits import TooMany, TooManyStreams
from experiments.registry.errors import Busy, Conflict, Forbidden, NotFound, RequestError

logger = logging.getLogger(__name__)

_MOST_ERRORS = 20
# Names that pydantic puts into a location for a member of a union, which no client wrote.
_UNION_TAGS = frozenset({"by-names", "by-spec", "run-spec", "by-fields", "by-yaml"})
_SCALARS: Mapping[str, str] = {
    "bool": "true or false",
    **dict.fromkeys(("int", "constrained-int"), "a whole number"),
    **dict.fromkeys(("float", "constrained-float"), "a number"),
    **dict.fromkeys(("str", "constrained-str"), "a text"),
}
"""What a value may be that has several types; pydantic tells of each one as if it were a field of its own."""
_OBJECTS = frozenset({"dict_type", "model_type", "model_attributes_type"})
_MOST_TOLD = 3
_WORDS: Mapping[str, str] = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field here; /api/v1/docs has those that there are",
    "list_type": "a list is needed, also for one",
    **dict.fromkeys(_OBJECTS, "an object is needed"),
}
"""In place of what pydantic says to people who write Python."""


class FieldProblem(BaseModel):
    """One thing that is wrong, and where."""

    field: str
    detail: str


class Problem(BaseModel):
    """What went wrong (RFC 9457). `field` names the first field to change, when it is a field."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str = ""
    errors: list[FieldProblem] = []


def problem(status: int, detail: str, *, field: str = "", errors: Sequence[FieldProblem] = ()) -> HttpResponse:
    """The answer for an error."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field, errors=list(errors))
    response = HttpResponse(json.dumps(body.model_dump()), status=status, content_type="application/problem+json")
    if status == HTTPStatus.UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Bearer realm="BenchHub"'
    return response


def install(api: NinjaAPI) -> None:
    """Map every error of the API."""
    handlers: dict[type[Exception], Any] = {
        RequestError: _request_error,
        TooMany: _too_many,
        TooManyStreams: lambda _request, error: problem(429, str(error)),
        PreconditionFailed: lambda _request, error: problem(412, str(error), field=error.field),
        RequestValidationError: _validation_error,
        HttpError: _http_error,
        Http404: lambda _request, _error: problem(404, "There is nothing at this address."),
        RequestDataTooBig: lambda _request, _error: problem(413, "The request is larger than 10 MB."),
        UnreadablePostError: lambda _request, _error: problem(400, "The request ended before its body was complete."),
        DataError: lambda _request, _error: problem(422, "A value is larger than BenchHub can store."),
        OperationalError: _database_away,
        InterfaceError: _database_away,
        Exception: _unexpected,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _request_error(_request: HttpRequest, error: RequestError) -> HttpResponse:
    statuses: Mapping[type[RequestError], int] = {Forbidden: 403, NotFound: 404, Conflict: 409, Busy: 503}
    status = next((status for kind, status in statuses.items() if isinstance(error, kind)), 422)
    several = [FieldProblem(field=field, detail=said) for field, said in error.problems[:_MOST_ERRORS]]
    response = problem(status, error.message, field=error.field, errors=several if len(several) > 1 else ())
    if isinstance(error, Busy):
        response["Retry-After"] = "10"
    return response


def _too_many(_request: HttpRequest, error: TooMany) -> HttpResponse:
    response = problem(429, str(error))
    response["Retry-After"] = str(error.budget.resets_s)
    return response


def _http_error(_request: HttpRequest, error: HttpError) -> HttpResponse:
    cause = error.__cause__
    if isinstance(cause, BodyError):  # ninja wraps what its parser raises
        return problem(cause.status, cause.message, field=cause.field)
    if isinstance(cause, RequestError):
        return problem(422, cause.message, field=cause.field)
    details = {
        401: "Send a live token as `Authorization: Bearer bh_...`, or sign in.",
        403: "The CSRF token is missing or wrong.",
    }
    return problem(error.status_code, details.get(error.status_code, error.message))


def _validation_error(_request: HttpRequest, error: RequestValidationError) -> HttpResponse:
    told = _values_as_one(error.errors)
    found = [FieldProblem(field=_field(one["loc"]), detail=_words(one)) for one in told[:_MOST_ERRORS]]
    first = found[0]
    if not first.field and told[0]["type"] == "missing":
        return problem(422, "The body is missing; send it as application/json.")
    said = [f"{one.field}: {one.detail}" if one.field else one.detail for one in found[:_MOST_TOLD]]
    more = [f"and {len(told) - _MOST_TOLD} more"] if len(told) > _MOST_TOLD else []
    return problem(422, "; ".join([*said, *more]), field=first.field, errors=found)


def _values_as_one(errors: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The errors, those of one value that is of none of its types as one error at its own place."""
    types: dict[tuple[str | int, ...], list[str]] = {}
    for one in errors:
        *place, last = one["loc"]
        if last in _SCALARS:
            types.setdefault(tuple(place), []).append(_SCALARS[last])
    found: list[Mapping[str, Any]] = []
    for one in errors:
        *place, last = one["loc"]
        words = types.get(tuple(place), []) if last in _SCALARS else []
        if len(words) < 2:
            found.append(one)
        elif _SCALARS[last] == words[0]:
            found.append({"loc": place, "type": "scalar", "msg": f"it is {' or '.join(words)}"})
    return found


def _words(error: Mapping[str, Any]) -> str:
    if error["type"] in _OBJECTS and not _field(error["loc"]):
        return "The body must be an object: {...}."
    return _WORDS.get(error["type"], str(error["msg"]).removeprefix("Value error, "))


def _field(location: Sequence[str | int]) -> str:
    """The dotted path as the client wrote it: without ninja's source and the name of the function's argument."""
    parts = [str(part) for part in as_written(location)]
    parts = parts[2:] if parts[:1] == ["body"] else parts[1:]
    return ".".join(part for part in parts if part not in _UNION_TAGS)


def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s: the database does not answer", request.method, request.path, exc_info=error)
    detail = "The database does not answer. What was stored before is not lost; ask again in a few seconds."
    response = problem(503, detail)
    response["Retry-After"] = "5"
    return response


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(500, "BenchHub failed to answer; the server's log says why.")


STATUSES: Mapping[int, str] = {
    400: "The body cannot be read",
    401: "No live token and no session",
    403: "A scope, a role or a grant is missing",
    404: "Not there, or of another team",
    409: "Not in a state that allows this, or there is one of this name",
    412: "Not as If-Match says",
    413: "Larger than 10 MB",
    415: "Neither JSON nor YAML",
    422: "A value does not fit, or a key was used for another request",
    429: "The token's requests of this minute are spent (Retry-After says when to go on), or it has too many streams",
    503: "The database does not answer; Retry-After says when to ask again",
}
_OF_A_BODY = frozenset({400, 413, 415})


def problem_responses(*, has_body: bool) -> dict[int, dict[str, str]]:
    """What an operation may answer when it does not do what it is asked."""
    wanted = (status for status in STATUSES if has_body or status not in _OF_A_BODY)
    return {status: {"$ref": f"#/components/responses/Problem{status}"} for status in wanted}


_TEXT: Mapping[str, Any] = {"schema": {"type": "string"}}
HEADERS: Mapping[str, Any] = {
    "RateLimit-Policy": {
        **_TEXT,
        "description": "Requests in a window of so many seconds",
        "example": '"default";q=6000;w=60',
    },
    "RateLimit": {
        **_TEXT,
        "description": "Requests left, and seconds until it begins anew",
        "example": '"default";r=5998;t=57',
    },
    "Retry-After": {**_TEXT, "description": "Seconds to wait before asking again", "example": "57"},
    "X-Request-ID": {
        **_TEXT,
        "description": "The request in the server's log: the id that you sent under this name, else a new one",
        "example": "046ceacba4a1971d",
    },
    "Link": {
        **_TEXT,
        "description": "Where the list goes on; not there at its end",
        "example": '</api/v1/recipes/limits/versions?cursor=3&limit=1>; rel="next"',
    },
    "Idempotency-Replayed": {
        **_TEXT,
        "description": "true = the answer that this Idempotency-Key got before; nothing was started again",
        "example": "true",
    },
    "Content-Disposition": {
        **_TEXT,
        "description": "The name under which to keep the file",
        "example": 'attachment; filename="runs.csv"',
    },
    "Location": {
        **_TEXT,
        "description": "Where the file is for the next minutes; send no token there",
        "example": "https://s3.example.org/benchhub/1f0c/7/2c29?X-Amz-Expires=300&X-Amz-Signature=5d1a",
    },
    "WWW-Authenticate": {**_TEXT, "description": "How to sign in", "example": 'Bearer realm="BenchHub"'},
    "ETag": {**_TEXT, "description": "This state; for If-None-Match and If-Match", "example": '"9f1c0de2a7b4"'},
}
"""The headers of answers, as the schema describes them."""
OF_EVERY_ANSWER = ("X-Request-ID", "RateLimit-Policy", "RateLimit")
"""To a caller with a live token; a session has no budget, and an answer to nobody tells the id alone."""
_EXAMPLES: Mapping[int, tuple[str, str]] = {
    400: ("The body is not JSON: line 1, column 2: Expecting value.", ""),
    401: ("Send a live token as `Authorization: Bearer bh_...`, or sign in.", ""),
    403: ("This needs a token with the scope launch.", ""),
    404: ("There is no run #99.", ""),
    409: ("The run is finished.", ""),
    412: ("It has changed since you read it; read it again and repeat the change on that.", ""),
    413: ("The request is larger than 10 MB.", ""),
    415: ("Send the body as application/json (or application/yaml).", ""),
    422: ("There is no recipe 'limits'.", "recipe"),
    429: ("This token may send 6000 requests in 60 s; go on in 57 s.", ""),
    503: ("The database does not answer. What was stored before is not lost; ask again in a few seconds.", ""),
}


def documented_problems() -> dict[str, Any]:
    """The answers that `problem_responses` refers to, each with its headers and an example."""
    found = {}
    for status, text in STATUSES.items():
        names = ["X-Request-ID"] if status == 401 else [*OF_EVERY_ANSWER]
        names += {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}.get(status, [])
        detail, field = _EXAMPLES[status]
        example = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field).model_dump()
        found[f"Problem{status}"] = {
            "description": text,
            "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
            "content": {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}
            },
        }
    return found
