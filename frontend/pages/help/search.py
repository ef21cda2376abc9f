"""Search in the documentation: the sections that hold every word, those whose heading has them first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from frontend.pages.help.contents import INDEX, help_page, page_text, sections_of, topics

MOST = 30
_AROUND = 90
"""Letters that an excerpt shows on each side of the first word."""


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


def search(asked: str) -> list[Hit]:
    """The sections with all words of `asked`, capitals aside; the best first, at most `MOST`."""
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


def _excerpt(text: str, words: list[str]) -> str:
    lower = text.lower()
    at = min((place for word in words if (place := lower.find(word)) >= 0), default=0)
    begin, end = max(0, at - _AROUND), min(len(text), at + _AROUND)
    return f"{'…' if begin else ''}{text[begin:end].strip()}{'…' if end < len(text) else ''}"


@cache
def _sections() -> tuple[_Section, ...]:
    """Every section of every page but the index, which only lists them."""
    found = []
    for topic in sorted(topics() - {INDEX}):
        title = help_page(topic).title
        for anchor, heading, text in sections_of(page_text(topic)):
            found.append(_Section(topic, title, anchor, heading, re.sub(r"\s+", " ", text).strip()))
    return tuple(found)
