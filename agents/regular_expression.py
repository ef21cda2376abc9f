"""Regular expressions that people write: checked when they are saved, bounded when they are used."""

from __future__ import annotations

from typing import Annotated

import regex
from pydantic import AfterValidator, Field


def _compiles(pattern: str) -> str:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None
    return pattern


RegularExpression = Annotated[str, Field(max_length=1000), AfterValidator(_compiles)]

SIMPLER = "Write it without repetitions inside repetitions, such as (a+)+."
"""What to do about an expression that takes too long."""
