"""The Content-Security-Policy header."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class ContentSecurityPolicyMiddleware:
    """Gives each request a nonce (`{{ request.csp_nonce }}`) and each answer the policy that allows it.

    A view may set the header itself; it is left alone then.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Answer]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        nonce = secrets.token_urlsafe(16)
        request.csp_nonce = nonce  # type: ignore[attr-defined]
        answer = self.get_response(request)
        if isinstance(answer, HttpResponseBase):
            return _with_policy(answer, nonce)
        return _with_policy_later(answer, nonce)


def _with_policy(response: HttpResponseBase, nonce: str) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY.format(nonce=nonce))
    return response


async def _with_policy_later(answer: Awaitable[HttpResponseBase], nonce: str) -> HttpResponseBase:
    return _with_policy(await answer, nonce)
