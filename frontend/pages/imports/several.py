"""Several files chosen in one field, and as the text that the form of a preview sends again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django import forms
from pydantic import TypeAdapter, ValidationError

from experiments.asking.intake.several_files import ImportFile

_FILES = TypeAdapter(list[ImportFile])


class FilesInput(forms.ClearableFileInput):
    """The browser lets one choose as many as one likes."""

    allow_multiple_selected = True


class FilesField(forms.FileField):
    """The files that were chosen, a list."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        chosen = data if isinstance(data, list | tuple) else [data] if data else []
        return [super(FilesField, self).clean(one, initial) for one in chosen]


def as_text(files: Sequence[ImportFile]) -> str:
    """The files as JSON, which a hidden field holds: a browser sends a chosen file once only."""
    return json.dumps([{"name": file.name, "text": file.text, "kind": file.kind} for file in files])


def from_text(text: str) -> list[ImportFile]:
    """The files of that JSON; ValueError when it is none."""
    try:
        return _FILES.validate_json(text)
    except ValidationError as error:
        raise ValueError("the files that were shown did not come back whole; choose them again") from error
