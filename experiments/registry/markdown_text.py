"""Text inside Markdown that stays text."""

from __future__ import annotations

import re


def cell(text: str) -> str:
    """One line that is safe in a table, a link, a list or a heading: no mark-up, no HTML, no line break."""
    for mark in "\\`*_[]<>|#~!&":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def block(text: str, language: str = "") -> str:
    """A fenced block; its fence is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
