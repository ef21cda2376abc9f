"""JSON reports: one object in a text, read with every figure checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from agents.base.errors import ParseError

MAX_CHARS = 8_000_000
MAX_COUNT = 10**18
_START = re.compile(r"^[ \t]*(\{)\s*[\"}]", re.MULTILINE)
# A word right behind the object is a warning: oha ends its report without a line end.
_MORE = re.compile(r"^\s*[{\"}\],]|\A[^\sA-Za-z]", re.MULTILINE)


class JsonObject:
    """An object of a report. Every getter raises ParseError that names the path and the line."""

    def __init__(self, values: dict[str, Any], text: str, path: str = "") -> None:
        self._values = values
        self._text = text
        self._path = path

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def names(self) -> list[str]:
        return list(self._values)

    def at(self, steps: Sequence[str | int]) -> Any:
        """What stands at the end of these names and places; None when there is nothing."""
        value: Any = self._values
        for step in steps:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def object(self, name: str) -> JsonObject:
        """The object at `name`."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self.error(name, "an object")
        return JsonObject(value, self._text, f"{self._path}{name}.")

    def objects(self, name: str) -> list[JsonObject]:
        """The objects of the list at `name`."""
        values = self._values.get(name)
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self.error(name, "a list of objects")
        return [JsonObject(value, self._text, f"{self._path}{name}[{i}].") for i, value in enumerate(values)]

    def number(self, name: str) -> float:
        """A number that is finite and not negative, in the unit that the report has for this name."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
            raise self.error(name, "a number of at least 0")
        return float(value)

    def known_number(self, name: str) -> float | None:
        """Like `number`, in the report's unit; None where it is missing or null."""
        return None if self._values.get(name) is None else self.number(name)

    def count(self, name: str) -> int:
        """A whole number that is not negative."""
        value = self.number(name)
        if value != math.floor(value):
            raise self.error(name, "a whole number")
        return int(value)

    def known_count(self, name: str) -> int | None:
        """Like `count`; None where it is missing or null."""
        return None if self._values.get(name) is None else self.count(name)

    def text(self, name: str) -> str:
        """A text of at most 8192 characters."""
        value = self._values.get(name)
        if not isinstance(value, str) or len(value) > 8192:
            raise self.error(name, "a text")
        return value

    def flag(self, name: str) -> bool:
        """True or false. ParseError when it is missing or something else."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self.error(name, "true or false")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty when it is missing or null."""
        values = self._values.get(name) or []
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self.error(name, "a list of texts")
        return list(values)

    def counts(self, name: str) -> dict[str, int]:
        """An object of whole numbers."""
        found = self.object(name)
        return {key: found.count(key) for key in found.names()}

    def error(self, name: str, wanted: str) -> ParseError:
        """A ParseError about the value of `name`."""
        missing = name not in self._values
        at = self._text.find(json.dumps(name))
        found = "it is missing" if missing else f"it is {str(self._values[name])[:60]!r}"
        return ParseError(
            f"{self._path}{name} should be {wanted}, but {found}",
            hint="Give the whole report as the tool wrote it.",
            line=self._text.count("\n", 0, max(at, 0)) + 1,
        )


def has_object(text: str) -> bool:
    """Whether a line of the text begins with an object."""
    return _START.search(text[:MAX_CHARS]) is not None


def has_no_object(text: str) -> bool:
    """Whether the text is no JSON but what a tool prints for people."""
    return not has_object(text)


def read_object(text: str, tool: str) -> JsonObject:
    """The only object in `text`; lines before and after it (warnings) are passed over. Raises ParseError."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; a report of {tool} has far fewer", line=1)
    start = _START.search(text)
    if not start:
        raise ParseError(
            f"no report of {tool} in the text (no line begins with '{{')",
            hint=f"Give the whole standard output of {tool}.",
            line=1,
        )
    at = start.start(1)
    decoder = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_repetition)
    try:
        values, end = decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"line {error.lineno}: the report of {tool} is no JSON: {error.msg}",
            hint="Is it cut off?",
            line=error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:
        what = str(error)[:100] or "too deeply nested"
        raise ParseError(f"the report of {tool} is no JSON: {what}", line=_line(text, at)) from error
    if more := _MORE.search(text[end:]):
        raise ParseError(
            f"something follows the report of {tool}; is it a second report?",
            hint="Give one report per file.",
            line=_line(text, end + more.end()),
        )
    return JsonObject(values, text)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a figure")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return values
