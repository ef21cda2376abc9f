"""What was asked for and is refused: said at its field, or on the page that comes next."""

from __future__ import annotations

from types import TracebackType

from django import forms
from django.contrib import messages
from django.http import HttpRequest

from experiments.registry.errors import Forbidden, NotFound, RequestError
from frontend.shared.typed import keep_typed


class RefusalSaid:
    """A RequestError ends the block with a message and goes no further; Forbidden and NotFound have their own pages.

    What was typed is kept for the form, which shows it again (`{% typed_into %}`).
    """

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, RequestError) or isinstance(error, Forbidden | NotFound):
            return False
        messages.error(self._request, error.message)
        keep_typed(self._request, error.message)
        return True


SHOWN_AT = {"target_ratio": "target_pct", "margin_ratio": "margin_pct"}
"""Fields that the form calls otherwise, because people write percent."""


def refuse(form: forms.Form, error: RequestError) -> None:
    """Show a use case's refusal at the field that it names, else above the form."""
    field = SHOWN_AT.get(error.field or "", error.field or "")
    if field.startswith("parameters."):  # as PartsForm calls it
        field = f"p_{field.removeprefix('parameters.')}"
    form.add_error(field if field in form.fields else None, error.message)
