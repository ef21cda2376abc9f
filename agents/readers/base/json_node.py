"""JSON of any shape, read with every value checked: an error names the path, such as `jobs[0] > read > iops`."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from agents.base.errors import ParseError
from agents.readers.base.numbers import MAX_NUMBER
from agents.readers.base.result_reader import MAX_CHARS

MAX_TEXT = 8192
_START = re.compile(r"^[ \t]*(\{(?=\s*[\"}])|\[(?=\s*[\[{\"\]]))", re.MULTILINE)
_MORE = re.compile(r"^\s*[{\"}\],]|\A[^\sA-Za-z;]", re.MULTILINE)
_UNKNOWN = {"NaN", "nan", "Infinity", "-Infinity", "-", "N/A", ""}


class Node:
    """A value of a document, and where it stands."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def find(self, *steps: str | int) -> Node | None:
        """What stands at the end of these names and places; None when it is missing or null."""
        value, path = self.value, self.path
        for step in steps:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
            path = _below(path, step)
        return None if value is None else Node(value, path)

    def at(self, *steps: str | int) -> Node:
        """Like `find`. ParseError: it is missing."""
        found = self.find(*steps)
        if found is None:
            path = self.path
            for step in steps:
                path = _below(path, step)
            raise ParseError(f"{path} is missing", hint="Give the whole file as the tool wrote it.")
        return found

    def items(self) -> list[tuple[str, Node]]:
        """The names of an object, with their values in order. ParseError: it is none."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return [(name, Node(value, _below(self.path, name))) for name, value in self.value.items()]

    def elements(self) -> list[Node]:
        """The elements of a list, in order. ParseError: it is none."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [Node(value, _below(self.path, place)) for place, value in enumerate(self.value)]

    def number(self) -> float:
        """A finite number, in the file's own unit. ParseError: it is none, or greater than 1e18."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
            raise self.wrong("a number")
        return value

    def numbers(self) -> list[float]:
        """The numbers of a list, in the file's own unit and order. ParseError: one of them is none."""
        return [element.number() for element in self.elements()]

    def known(self, *steps: str | int) -> float | None:
        """The number there, in the file's own unit; None where it is missing, null or "NaN"."""
        found = self.find(*steps)
        if found is None or (isinstance(found.value, str) and found.value in _UNKNOWN):
            return None
        return found.number()

    def count(self) -> int:
        """A whole number that is not negative. ParseError: it is something else."""
        value = self.number()
        if value < 0 or value != math.floor(value):
            raise self.wrong("a whole number")
        return int(value)

    def known_count(self, *steps: str | int) -> int | None:
        """Like `count`; None where it is missing or null."""
        found = self.find(*steps)
        return None if found is None else found.count()

    def text(self) -> str:
        """A text of at most 8192 characters. ParseError: it is none."""
        if not isinstance(self.value, str) or len(self.value) > MAX_TEXT:
            raise self.wrong("a text")
        return self.value

    def known_text(self, *steps: str | int) -> str | None:
        """The text there; None where it is missing or null."""
        found = self.find(*steps)
        return None if found is None else found.text()

    def wrong(self, wanted: str) -> ParseError:
        """A ParseError that says what should stand here."""
        return ParseError(
            f"{self.path or 'the document'} should be {wanted}, but it is {_short(self.value)}",
            hint="Give the file as the tool wrote it.",
        )


def load_json(text: str, tool: str) -> tuple[Node, list[str]]:
    """The only document in `text`, and the lines before it (warnings). Raises ParseError."""
    if len(text) > MAX_CHARS:
        raise ParseError(
            f"the text has {len(text)} characters; at most {MAX_CHARS} of a file of {tool} are read", line=1
        )
    start = _START.search(text)
    if not start:
        raise ParseError(
            f"no JSON of {tool} in the text (no line begins with '{{' or '[')",
            hint=f"Give the whole file that {tool} wrote.",
            line=1,
        )
    value, end = decode(text, start.start(1), tool)
    if more := _MORE.search(text[end:]):
        raise ParseError(
            f"something follows the JSON of {tool}; is it a second result?",
            hint="Give one result in a file.",
            line=line_of(text, end + more.end()),
        )
    return Node(value), [line.rstrip() for line in text[: start.start(1)].split("\n") if line.strip()]


def decode(text: str, at: int, tool: str) -> tuple[Any, int]:
    """The document that begins at a place of the text, and the place where it ends. Raises ParseError."""
    decoder = json.JSONDecoder(parse_constant=lambda _name: None, object_pairs_hook=_without_repetition)
    try:
        return decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise ParseError(
            f"line {error.lineno}: the file of {tool} is no JSON: {error.msg}", hint="Is it cut off?", line=error.lineno
        ) from error
    except (ValueError, RecursionError) as error:
        what = str(error)[:100] if isinstance(error, ValueError) else "too deeply nested"
        raise ParseError(f"the file of {tool} is no JSON: {what}", line=line_of(text, at)) from error


def line_of(text: str, at: int) -> int:
    """The number of the line, from 1, of a place in the text (counted in characters)."""
    return text.count("\n", 0, at) + 1


def has_keys(head: str, *names: str) -> bool:
    """Whether a JSON text has these names of objects in its head."""
    return _START.search(head) is not None and all(f'"{name}"' in head for name in names)


def first_names(head: str) -> set[str]:
    """The names of the first object of a list of objects, also after lines of text; empty where there is none."""
    start = re.search(r"^[ \t]*\[\s*(?=\{)", head, re.MULTILINE)
    if not start:
        return set()
    try:
        value, _ = json.JSONDecoder().raw_decode(head, start.end())
    except (ValueError, RecursionError):
        return set(re.findall(r'"([^"\\]{1,40})"\s*:', head))
    return set(value) if isinstance(value, dict) else set()


def _below(path: str, step: str | int) -> str:
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path} > {step[:80]}" if path else step[:80]


def _short(value: Any) -> str:
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return repr(value[:60]) if isinstance(value, str) else _shortened(value)


def _shortened(value: Any) -> str:
    try:
        return str(value)[:60]
    except ValueError:  # a whole number of thousands of digits
        return "a number that no tool prints"


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values and values[name] != value:
            raise ValueError(f"the name {name[:60]!r} occurs twice in an object, with two values")
        values[name] = value
    return values
