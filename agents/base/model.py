"""The base of everything that comes from outside: strict about names, frozen once read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

_WITH_KIND = ("driver", "server")


class Frozen(BaseModel):
    """A pydantic model that refuses unknown fields (a typo is an error, not a silent default) and cannot change."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


AS_TEXT = BeforeValidator(_as_text)
"""For what is text in the file: YAML writes maxThreads: 7 and secure: true."""


def kinds_of(union: Any) -> dict[str, Any]:
    """The classes of `Annotated[A | B | ..., Field(discriminator="kind")]` by their kind: one list is enough."""
    return {member.model_fields["kind"].default: member for member in get_args(get_args(union)[0])}


def first_problem(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Where the first problem is (path of names and places) and what it is, in the validator's own words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return as_written(first["loc"]), first["msg"].removeprefix("Value error, ")


def problems_in_words(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Each problem: where it is, as `first_problem` says it, and what to do in words that need no programmer."""
    found = error.errors(include_url=False, include_input=False)
    return [(as_written(one["loc"]), _in_words(one["type"], one["msg"], one.get("ctx", {}))) for one in found]


def _in_words(kind: str, message: str, context: Mapping[str, Any]) -> str:
    words = _WORDS.get(kind)
    return words.format(**context) if words else f"{message.removeprefix('Value error, ').rstrip('.')}."


_WHOLE, _NUMBER = "This is a whole number, such as 64.", "This is a number, such as 0.5."
_WORDS: Mapping[str, str] = {
    "missing": "This must be given.",
    "extra_forbidden": "There is no such setting here.",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), _WHOLE),
    **dict.fromkeys(("float_parsing", "float_type"), _NUMBER),
    **dict.fromkeys(("bool_parsing", "bool_type"), "This is true or false."),
    "greater_than_equal": "It must be at least {ge}.",
    "greater_than": "It must be more than {gt}.",
    "less_than_equal": "It must be at most {le}.",
    "less_than": "It must be less than {lt}.",
    "literal_error": "It must be one of: {expected}.",
    "string_too_long": "It has at most {max_length} characters.",
    "string_too_short": "It must not be empty.",
    "string_type": "This is a text.",
    "string_pattern_mismatch": "It does not have the form that is needed here: {pattern}",
    "list_type": "This is a list, one per line.",
    "tuple_type": "This is a list, one per line.",
    "dict_type": "This is a list of names with values.",
}
"""What pydantic calls a problem -> what to do about it."""


def as_written(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """The path as the text has it: pydantic puts the kind of a driver, a server or a step in as a name of its own."""
    found: list[str | int] = []
    for at, part in enumerate(location):
        before = location[at - 1] if at else None
        of_a_step = isinstance(before, int) and location[at - 2] == "steps" and at + 1 < len(location)
        if not (before in _WITH_KIND or of_a_step):
            found.append(part)
    return tuple(found)
