"""The Content-Security-Policy header."""

from __future__ import annotations

import secrets

from django.http import HttpRequest, HttpResponseBase

from benchhub.answering import Answer, AnswerMiddleware, then

POLICY = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class ContentSecurityPolicyMiddleware(AnswerMiddleware):
    """Gives each request a nonce (`{{ request.csp_nonce }}`) and each answer the policy that allows it.

    A view may set the header itself; it is left alone then.
    """

    def __call__(self, request: HttpRequest) -> Answer:
        nonce = secrets.token_urlsafe(16)
        request.csp_nonce = nonce  # type: ignore[attr-defined]
        return then(self.get_response(request), lambda answer: _with_policy(answer, nonce))


def _with_policy(response: HttpResponseBase, nonce: str) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY.format(nonce=nonce))
    return response
