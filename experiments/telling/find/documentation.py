"""The files of `docs/`: their topics, their sections, and the sections that hold certain words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from markdown_it import MarkdownIt
from markdown_it.token import Token

INDEX = "README"
MOST = 30
_AROUND = 90
"""Letters that an excerpt shows on each side of the first word."""
_TITLE = re.compile(r"^# +(.+?) *#*$", re.MULTILINE)


@dataclass(frozen=True)
class Hit:
    """A section: its page, its heading ("" before the first one), and what stands around the first word."""

    topic: str
    title: str
    anchor: str
    heading: str
    excerpt: str


@dataclass(frozen=True)
class _Section:
    topic: str
    title: str
    anchor: str
    heading: str
    text: str


@cache
def files() -> dict[str, str]:
    """The topic of every file, by its path below `docs/`; a file in a folder has a name that no other file has."""
    docs: Path = settings.BASE_DIR / "docs"
    return {path.relative_to(docs).as_posix(): path.stem for path in docs.rglob("*.md")}


@cache
def topics() -> frozenset[str]:
    """The names of the pages, without the index."""
    return frozenset(files().values()) - {INDEX}


def file_of(topic: str) -> str:
    """The path of a topic below `docs/`. KeyError when there is none."""
    return {stem: name for name, stem in files().items()}[topic]


def page_text(topic: str) -> str:
    """The page as it is written. KeyError when there is none."""
    return (settings.BASE_DIR / "docs" / file_of(topic)).read_text(encoding="utf-8")


def title_of(topic: str) -> str:
    """The first heading of a page, without marks. KeyError when there is no such page."""
    found = _TITLE.search(page_text(topic))
    return found[1].replace("`", "") if found else topic


def anchor(words: str) -> str:
    """The id of a heading, as code forges make it, so that links within the files work in both places."""
    return re.sub(r"[^a-z0-9_-]", "", words.lower().replace(" ", "-"))


def sections_of(text: str) -> list[tuple[str, str, str]]:
    """The parts of a Markdown text between its headings: (anchor, heading, text without marks)."""
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    found: list[tuple[str, str, list[str]]] = [("", "", [])]
    for before, token in pairwise(tokens):
        if token.type not in ("inline", "fence", "code_block"):
            continue
        words = _words(token) if token.type == "inline" else token.content
        if before.type == "heading_open":
            found.append((anchor(words) if before.tag != "h1" else "", words if before.tag != "h1" else "", []))
        else:
            found[-1][2].append(words)
    return [(place, heading, " ".join(parts)) for place, heading, parts in found if parts or heading]


def search(asked: str) -> list[Hit]:
    """The sections with all words of `asked`, capitals aside; those whose heading has them first, at most `MOST`."""
    words = [word for word in asked.lower().split() if word][:10]
    if not words:
        return []
    found = []
    for place, section in enumerate(_sections()):
        head, text = f"{section.title} {section.heading}".lower(), section.text.lower()
        if all(word in head or word in text for word in words):
            in_head = sum(word in section.heading.lower() for word in words)
            often = sum(text.count(word) for word in words)
            found.append((-in_head, -often, place, section))
    return [
        Hit(one.topic, one.title, one.anchor, one.heading, _excerpt(one.text, words))
        for *_, one in sorted(found, key=lambda line: line[:3])[:MOST]
    ]


def _words(inline: Token) -> str:
    """The text of a line without its marks; a break is a blank."""
    return "".join(" " if child.type == "softbreak" else child.content for child in inline.children or ())


def _excerpt(text: str, words: list[str]) -> str:
    lower = text.lower()
    at = min((place for word in words if (place := lower.find(word)) >= 0), default=0)
    begin, end = max(0, at - _AROUND), min(len(text), at + _AROUND)
    return f"{'…' if begin else ''}{text[begin:end].strip()}{'…' if end < len(text) else ''}"


@cache
def _sections() -> tuple[_Section, ...]:
    """Every section of every page but the index, which only lists them."""
    found = []
    for topic in sorted(topics()):
        title = title_of(topic)
        for place, heading, text in sections_of(page_text(topic)):
            found.append(_Section(topic, title, place, heading, re.sub(r"\s+", " ", text).strip()))
    return tuple(found)
