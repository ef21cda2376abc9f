"""The base of everything that comes from outside: strict about names, frozen once read."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A pydantic model that refuses unknown fields (a typo is an error, not a silent default) and cannot change."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)
