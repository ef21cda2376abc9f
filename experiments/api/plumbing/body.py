"""Request bodies, read strictly: JSON or YAML of bounded depth, without doubles, NaN, NUL or halves of characters."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from django.http import HttpRequest
from django.utils.datastructures import MultiValueDict
from ninja.parser import Parser

from experiments.registry.documents.yaml_text import parse_yaml
from experiments.registry.errors import RequestError

MAX_DEPTH = 50
MAX_VALUES = 50_000
_MOST_DIGITS = 19
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"')
T = TypeVar("T")
_JSON = frozenset({"application/json"})
_YAML = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})


class BodyError(Exception):
    """The body cannot be read; `status` is the HTTP status that says so."""

    def __init__(self, status: int, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field


class StrictParser(Parser):
    """Reads bodies by their content type, and refuses text that cannot be stored wherever it comes in."""

    def parse_body(self, request: HttpRequest) -> Any:
        content_type = (request.content_type or "").lower()
        if content_type in _YAML:
            return parse_yaml(_decoded(request.body))
        if content_type not in _JSON:
            raise BodyError(415, "Send the body as application/json (or application/yaml).")
        return read_json(_decoded(request.body))

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        found: dict[str, Any] = super().parse_querydict(data, list_fields, request)
        for name, value in found.items():
            if "\0" in name or any("\0" in str(one) for one in (value if isinstance(value, list) else [value])):
                raise RequestError("A NUL character cannot be searched for.", field=name.replace("\0", ""))
        return found


def read_json(text: str) -> Any:
    """The data in `text`. BodyError for what JSON itself, or the database, does not know, and for too many values."""
    if text.count("[") > MAX_VALUES and _TEXT.sub("", text).count("[") > MAX_VALUES:
        raise _too_many()  # lists are the one kind of value that the reader below does not get to see
    seen = itertools.count(1)

    def counted(read: Callable[[Any], T]) -> Callable[[Any], T]:
        def reader(found: Any) -> T:
            # Counted while it is read: millions of small values would keep the server busy for seconds.
            if next(seen) > MAX_VALUES:
                raise _too_many()
            return read(found)

        return reader

    try:
        data = json.loads(
            text,
            object_pairs_hook=counted(_unique),
            parse_constant=_no_constant,
            parse_float=counted(_finite),
            parse_int=counted(_bounded),
        )
    except RecursionError as error:
        raise BodyError(422, f"The body is nested deeper than {MAX_DEPTH} levels.") from error
    except json.JSONDecodeError as error:
        raise BodyError(
            400, f"The body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    if _may_be_deep_or_odd(text):
        _check(data)
    return data


def _may_be_deep_or_odd(text: str) -> bool:
    """Whether `_check` could find anything: NUL and halves of characters come in as escapes only."""
    opened = text.count("[") + text.count("{")
    return opened > MAX_DEPTH - 1 or opened + text.count(",") >= MAX_VALUES or "\\u" in text


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BodyError(400, f"The body is not UTF-8: byte {error.start} cannot be read.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_VALUES:
        raise _too_many()
    found = dict(pairs)
    if len(found) != len(pairs):
        double = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise BodyError(422, f"The key {double[:60]!r} stands twice in one object.", field=double[:60])
    return found


def _no_constant(name: str) -> NoReturn:
    raise BodyError(422, f"{name} is not a number that JSON knows.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BodyError(422, f"{text[:40]} is too large a number.")
    return number


def _bounded(text: str) -> int:
    if len(text.lstrip("-")) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise BodyError(422, f"{text[:40]} does not fit into 64 bits.")
    return int(text)


def _too_many() -> BodyError:
    return BodyError(422, f"The body holds more than {MAX_VALUES} values.")


def _check(data: Any) -> None:
    """Depth, number and characters, without recursion."""
    level, depth, values = [data], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise BodyError(422, f"The body is nested deeper than {MAX_DEPTH} levels.")
        values += len(level)
        if values > MAX_VALUES:
            raise _too_many()
        below: list[Any] = []
        for node in level:
            if isinstance(node, str):
                _check_text(node)
            elif isinstance(node, dict):
                for key in node:
                    _check_text(key)
                below += node.values()
            elif isinstance(node, list):
                below += node
        level = below


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BodyError(422, "A text holds a NUL character, which cannot be stored.")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise BodyError(422, "A text holds half of a surrogate pair, which is no character.") from error
