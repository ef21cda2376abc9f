"""Values that people put into addresses."""

from __future__ import annotations

MAX_DIGITS = 18
"""What every id of the database fits into."""


def id_in(text: str) -> int | None:
    """The id, or another whole number, in a value of a query string or form; None when it is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None
