"""How BenchHub talks to an identity provider by itself, and what it believes of the answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import InvalidURL

from benchhub.single_sign_on import is_this_machine


class _OnThisMachine(HTTPAdapter):
    def send(self, request: PreparedRequest, *arguments: Any, **more: Any) -> Response:
        if not is_this_machine(urlsplit(request.url or "").hostname or ""):
            raise InvalidURL(f"The identity provider names an address without TLS: {request.url}")
        return super().send(request, *arguments, **more)


def insist_on_tls(session: Session) -> None:
    """Let the session ask no other machine without TLS, whatever the provider's own description and redirects say.

    The ID token is believed because it came over TLS from the provider, so its signature is not looked at.
    """
    session.mount("http://", _OnThisMachine())


def refusal(said: Any) -> str:
    """Why the answer of an OpenID Connect provider signs nobody in; empty = nothing is wrong.

    Issuer, audience and expiry of the ID token have been checked, where it has them.
    """
    token, userinfo = (said.get(part) if isinstance(said, dict) else None for part in ("id_token", "userinfo"))
    if not isinstance(token, dict):
        return "the provider sent no ID token"
    if "exp" not in token:
        return "its ID token has no end (exp)"
    if isinstance(userinfo, dict) and userinfo.get("sub") != token.get("sub"):
        return "its ID token and its userinfo are about two people (sub)"
    return ""


def said_verified(value: Any) -> bool:
    """Whether a claim says yes: some providers send the words true and false."""
    return value is True or (isinstance(value, str) and value.lower() == "true")
