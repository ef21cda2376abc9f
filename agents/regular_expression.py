"""Regular expressions that people write: checked when they are saved, bounded when they are used."""

from __future__ import annotations

import re
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|&|P>|[+-]?[0-9])", re.ASCII)


def _compiles(pattern: str) -> str:
    if _RECURSION.search(pattern):
        # It takes all the memory there is long before the time is up.
        raise ValueError("an expression that calls itself, such as (?R) or (?1), is not taken")
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None
    return pattern


RegularExpression = Annotated[str, Field(max_length=1000), AfterValidator(_compiles)]

SIMPLER = "Write it without repetitions inside repetitions, such as (a+)+."
"""What to do about an expression that takes too long."""
