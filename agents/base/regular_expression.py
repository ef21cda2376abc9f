"""Regular expressions that people write: checked when they are saved, bounded when they are used."""

from __future__ import annotations

import math
import re
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from agents.base.errors import PlanError

_RECURSION = re.compile(r"(?<!\\)(?:\\\\)*\(\?(?:R|&|P>|[+-]?[0-9])", re.ASCII)
_VERBOSE = re.compile(r"\(\?[A-Za-z0-9-]*x[A-Za-z0-9-]*[:)]", re.ASCII)
_COUNT = re.compile(r"\{\s*([0-9]+)", re.ASCII)
MOST_COPIES = 500_000
"""What {n} repeats is compiled n times, at 270 bytes for each letter: this many take 135 MB, and 1 s."""


def _compiles(pattern: str) -> str:
    if _RECURSION.search(pattern):
        # It takes all the memory there is long before the time is up.
        raise ValueError("an expression that calls itself, such as (?R) or (?1), is not taken")
    if _VERBOSE.search(pattern):
        raise ValueError("an expression with blanks and remarks in it, (?x), is not taken")  # they would hide a count
    # As if each count were inside all others: which one is inside which need not be known, and cannot be hidden.
    if math.prod(int(count) or 1 for count in _COUNT.findall(pattern)) * len(pattern) > MOST_COPIES:
        raise ValueError("the numbers in braces, such as {1000}, are too large together; write + or * instead")
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None
    return pattern


RegularExpression = Annotated[str, Field(max_length=1000), AfterValidator(_compiles)]

SIMPLER = "Write it without repetitions inside repetitions, such as (a+)+."
"""What to do about an expression that takes too long."""
MATCH_TIMEOUT_S = 1.0


def matches(pattern: str, text: str) -> bool:
    """Whether the text has it. PlanError for a pattern that would keep the worker busy for seconds: it must beat."""
    try:
        return regex.search(pattern, text, timeout=MATCH_TIMEOUT_S) is not None
    except TimeoutError:
        raise PlanError(
            f"The pattern {pattern!r} takes longer than {MATCH_TIMEOUT_S:g} s to look for.", hint=SIMPLER
        ) from None
