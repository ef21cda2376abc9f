"""What middleware that changes answers has in common: Django gives it answers, or promises of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class AnswerMiddleware(ABC):
    """Serves requests of either kind without a thread between them."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    @abstractmethod
    def __call__(self, request: HttpRequest) -> Answer: ...


def then(answer: Answer, change: Callable[[HttpResponseBase], HttpResponseBase]) -> Answer:
    """The answer as `change` makes it, now or when it comes."""
    return change(answer) if isinstance(answer, HttpResponseBase) else _later(answer, change)


async def _later(
    answer: Awaitable[HttpResponseBase], change: Callable[[HttpResponseBase], HttpResponseBase]
) -> HttpResponseBase:
    return change(await answer)
