"""What was asked for and is refused, said on the page that comes next."""

from __future__ import annotations

from types import TracebackType

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
