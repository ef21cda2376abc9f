"""The base of everything that comes from outside: strict about names, frozen once read."""

from __future__ import annotations

from collections.abc import Sequence
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


def as_written(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """The path as the text has it: pydantic puts the kind of a driver, a server or a step in as a name of its own."""
    found: list[str | int] = []
    for at, part in enumerate(location):
        before = location[at - 1] if at else None
        of_a_step = isinstance(before, int) and location[at - 2] == "steps" and at + 1 < len(location)
        if not (before in _WITH_KIND or of_a_step):
            found.append(part)
    return tuple(found)
