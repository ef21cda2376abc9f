"""YAML as people write documents in it, with bounds: no tags, no surprises of YAML 1.1, no bombs, no duplicate keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from experiments.registry.errors import RequestError

MAX_CHARS = 3_000_000
"""Room for every document that can be saved as JSON: a test plan of a million characters, each escaped in quotes."""
MAX_DEPTH = 20
MAX_VALUES = 50_000
"""Values in one document; an alias counts as all that it stands for."""

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: Mapping[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def parse_yaml(text: str) -> dict[str, Any]:
    """The mapping in `text` as plain JSON data: `on`, `0644`, `12:30` and dates stay text, as YAML 1.2 reads them.

    RequestError (field `yaml`) says which line is wrong.
    """
    if len(text) > MAX_CHARS:
        raise RequestError(f"A document has at most {MAX_CHARS:,} characters.", field="yaml")
    try:
        data = _Reader(yaml.parse(text, Loader=_LOADER)).read()
    except (yaml.YAMLError, ValueError) as error:
        raise RequestError(f"This is not YAML that BenchHub reads: {_sentence(error)}.", field="yaml") from error
    if not isinstance(data, dict):
        raise RequestError("The document must be a mapping: lines of `key: value`.", field="yaml")
    return data


def dump_yaml(data: Mapping[str, Any]) -> str:
    """`data` as YAML that `parse_yaml` reads back unchanged."""
    text: str = yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times as fast


@dataclass(frozen=True)
class _Anchored:
    value: Any
    values: int
    height: int


class _Reader:
    """Builds the data from the parser's events, so that every bound holds before anything is built."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.anchors: dict[str, _Anchored] = {}
        self.values = 0
        self.deepest = 0

    def read(self) -> Any:
        documents = 0
        data = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
            elif isinstance(event, yaml.NodeEvent):
                if documents > 1:
                    raise _at(event, "there is more than one document")
                data = self.node(event, depth=1)
        return data

    def node(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, depth)
        self.count(event, 1, depth)
        if event.tag not in (None, "!"):
            raise _at(event, f"tags such as {event.tag[:60]} are not read")
        before, outer_deepest = self.values, self.deepest
        self.deepest = depth
        value: Any
        if isinstance(event, yaml.MappingStartEvent):
            value = self.mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = [self.node(item, depth + 1) for item in self.until(yaml.SequenceEndEvent)]
        else:
            value = _scalar(event)
        if event.anchor:
            self.anchors[event.anchor] = _Anchored(value, self.values - before + 1, self.deepest - depth)
        self.deepest = max(self.deepest, outer_deepest)
        return value

    def mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key in self.until(yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent) or key.tag not in (None, "!"):
                raise _at(key, "a key must be plain text")
            if key.value in found:
                raise _at(key, f"the key '{key.value[:60]}' stands here twice")
            self.count(key, 1, depth)
            name = _text(key)
            found[name] = self.node(next(self.events), depth + 1)
        return found

    def alias(self, event: Any, depth: int) -> Any:
        known = self.anchors.get(event.anchor)
        if known is None:
            raise _at(event, f"the alias *{event.anchor} stands inside or before its anchor")
        self.count(event, known.values, depth + known.height)
        return known.value

    def until(self, end: type[Any]) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield event

    def count(self, event: Any, values: int, depth: int) -> None:
        self.values += values
        self.deepest = max(self.deepest, depth)
        if depth > MAX_DEPTH:
            raise _at(event, f"it is nested deeper than {MAX_DEPTH} levels")
        if self.values > MAX_VALUES:
            raise _at(event, f"it has more than {MAX_VALUES} values")


def _scalar(event: Any) -> Any:
    text = _text(event)
    if event.style or not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise _at(event, f"{text[:60]} is too large a number")
        return number
    return text


def _text(event: Any) -> str:
    text: str = event.value
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise _at(event, "it holds a character that text cannot have (NUL or half of a surrogate pair)")
    return text


def _at(event: Any, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _sentence(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return (str(error).splitlines() or ["it cannot be read"])[0]


class _Dumper(yaml.SafeDumper):
    """Long texts as blocks, nothing as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    block = "\n" in text and not re.search(r"[ \t]\n|\t|\r|^\s", text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _represent_text)
