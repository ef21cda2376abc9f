"""Numbers in printed text. What a tool prints for "unknown" (nan, N/A, -) becomes None."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from agents.base.errors import ParseError

MAX_NUMBER = 1e18
NUMBER = r"[-+]?[0-9]{1,20}(?:\.[0-9]{1,400})?(?:[eE][-+]?[0-9]{1,3})?"
_NUMBER = re.compile(NUMBER, re.ASCII)
_UNKNOWN = {
    "",
    "-",
    "--",
    "---",
    "n/a",
    "na",
    "nan",
    "-nan",
    "null",
    "none",
    "inf",
    "-inf",
    "infinity",
    "-infinity",
    "∞",
}


def number(text: str, what: str, line: int | None = None) -> float:
    """The number that is printed for `what`, in its own unit. ParseError: it is none, or greater than 1e18."""
    if _NUMBER.fullmatch(text):
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
        if abs(value) <= MAX_NUMBER:
            return value
    raise ParseError(
        f"{what} should be a number, but it is {text[:60]!r}", hint="Give the file as the tool wrote it.", line=line
    )


def known_number(text: str, what: str, line: int | None = None) -> float | None:
    """Like `number`, in the same unit; None for what tools print when they do not know it."""
    return None if text.strip().lower() in _UNKNOWN else number(text.strip(), what, line)


def count(text: str, what: str, line: int | None = None) -> int:
    """A whole number that is not negative. ParseError: it is something else."""
    value = number(text, what, line)
    if value < 0 or value != math.floor(value):
        raise ParseError(f"{what} should be a whole number, but it is {text[:60]!r}", line=line)
    return int(value)


def times(value: float | None, factor: float) -> float | None:
    """The value by a factor, into another unit; None stays None."""
    return None if value is None else value * factor


def over(value: float | None, divisor: float) -> float | None:
    """The value in a greater unit, of which one has `divisor` of its own; None stays None."""
    return None if value is None else value / divisor


def percentile_name(percent: float) -> str:
    """How a percentile (percent, 0 to 100) stands in the name of a figure: p50, p99.9."""
    return f"p{percent:.12g}"


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean, in the values' own unit. ParseError: there are none."""
    if not values:
        raise ParseError("there is no value to take a mean of", hint="Give the file as the tool wrote it.")
    return math.fsum(values) / len(values)
