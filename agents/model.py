"""The base of everything that comes from outside: strict about names, frozen once read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError


class Frozen(BaseModel):
    """A pydantic model that refuses unknown fields (a typo is an error, not a silent default) and cannot change."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


def first_problem(error: ValidationError) -> tuple[tuple[str | int, ...], str]:
    """Where the first problem is (path of names and places) and what it is, in the validator's own words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return first["loc"], first["msg"].removeprefix("Value error, ")
