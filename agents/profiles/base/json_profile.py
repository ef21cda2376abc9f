"""JSON profiles: the whole document checked by a pydantic model, errors with the path of what is wrong."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agents.base.errors import ParseError
from agents.base.model import first_problem
from agents.profiles.base.folding import MAX_JSON_BYTES, not_larger


class Outside(BaseModel):
    """A part of somebody else's document: what we need is checked, what we do not know is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


Document = TypeVar("Document", bound=Outside)


def load(kind: type[Document], data: bytes, tool: str) -> Document:
    """The document of this tool. ParseError: it is too large, no JSON, or not of this form."""
    not_larger(len(data), MAX_JSON_BYTES)
    try:
        return kind.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        path, what = first_problem(error)
        where = " > ".join(map(str, path)) or "the document"
        raise ParseError(f"{where} of the profile of {tool}: {what}", hint="Give the whole file.") from error
