"""A configuration file as its settings, so that two of them are compared by what they say and not by their text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

KINDS = (".conf", ".cnf", ".cfg", ".ini", ".properties", ".env", ".toml")
"""Files of settings. Others are scripts, pages and data: what one of their lines means, only their reader knows."""

_QUOTED = r"\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'"
_STATEMENT = re.compile(rf"((?:{_QUOTED}|[^;{{}}\"'])*+)([;{{}}])", re.DOTALL)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
_SECTION = re.compile(r"\[+([^\[\]]{1,200})\]+")
_ENTRY = re.compile(r"([A-Za-z_][\w.\-]*)(?:[ \t]*[=:][ \t]*|[ \t]+|$)(.*)")


def settings_of(path: str, text: str) -> dict[str, str] | None:
    """Setting -> value, sections and blocks before it (`http.server.listen`); None when the file is no list of them.

    A setting that stands there several times has its number behind it: `save`, `save[2]`.
    """
    if not path.endswith(KINDS):
        return None
    bare = _COMMENT.sub("", text)
    in_blocks = re.search(r"[;{]\s*$", bare, re.MULTILINE) is not None
    found = _of_blocks(bare) if in_blocks else _of_lines(bare)
    try:
        return _numbered(found)
    except ValueError:
        return None


def _of_blocks(text: str) -> Iterator[tuple[str, str]]:
    """As nginx and HAProxy's maps write it: `name value;` and `name value { ... }`. ValueError when it is not that."""
    blocks: list[str] = []
    end = 0
    for match in _STATEMENT.finditer(text):
        if match.start() != end:
            raise ValueError("something stands between two settings")
        words, end = " ".join(match[1].split()), match.end()
        name, _, value = words.partition(" ")
        if match[2] == "{":
            blocks.append(words)
        elif match[2] == "}":
            if words or not blocks:
                raise ValueError("a block ends where there is none")
            blocks.pop()
        elif name:
            yield ".".join((*blocks, name)), value
    if blocks or text[end:].strip():
        raise ValueError("the end is missing")


def _of_lines(text: str) -> Iterator[tuple[str, str]]:
    """As Redis, PostgreSQL and INI files write it. ValueError when a line is none of it."""
    section = ""
    for line in filter(None, (line.strip() for line in text.splitlines())):
        if line.startswith((";", "!")):
            continue
        if match := _SECTION.fullmatch(line):
            section = f"{match[1].strip()}."
        elif match := _ENTRY.fullmatch(line):
            yield f"{section}{match[1]}", " ".join(match[2].split())
        else:
            raise ValueError("a line is no setting")


def _numbered(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    seen: Counter[str] = Counter()
    found = {}
    for name, value in settings:
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name}[{seen[name]}]"] = value
    return found
