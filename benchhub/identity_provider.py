"""The way to the identity provider, over a page with a link; and the way back, for answers that are no answers."""

from __future__ import annotations

import logging
from typing import Any

from allauth.socialaccount.providers.openid_connect.views import callback as oidc_callback
from allauth.socialaccount.providers.openid_connect.views import login as oidc_login
from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path
from lxml.etree import LxmlError

logger = logging.getLogger(__name__)

MOST_LETTERS = 256 * 1024


def _by_link(answer: HttpResponseBase, request: HttpRequest) -> HttpResponseBase:
    """A form may not lead to another site, not even by a redirect (Content-Security-Policy: form-action 'self')."""
    if request.method == "POST" and isinstance(answer, HttpResponseRedirect) and "://" in answer.url:
        return render(request, "socialaccount/leaving.html", {"address": answer.url})
    return answer


def to_oidc(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    return _by_link(oidc_login(request, provider_id=provider_id), request)


def oidc_answer(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """The sign-in with the provider's answer. One that lacks what it must have is refused like a false one."""
    try:
        return oidc_callback(request, provider_id=provider_id)  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError) as error:
        logger.warning("An answer to /accounts/oidc/ was refused: %s", repr(error))
        return _refused(request)


def to_saml(request: HttpRequest, organization_slug: str) -> HttpResponseBase:
    from allauth.socialaccount.providers.saml.views import login as saml_login  # its library is loaded on demand

    return _by_link(saml_login(request, organization_slug=organization_slug), request)


def saml_answer(request: HttpRequest, organization_slug: str) -> HttpResponseBase:
    """Where the browser brings the provider's answer. It is kept for the next request, so it may not be of any size."""
    from allauth.socialaccount.providers.saml.views import acs

    if len(request.POST.get("SAMLResponse", "")) > MOST_LETTERS:
        return _refused(request)
    return acs(request, organization_slug=organization_slug)  # type: ignore[no-any-return]


saml_answer.csrf_exempt = True  # type: ignore[attr-defined]  # it comes from another site; its signature is checked


def saml_finish(request: HttpRequest, organization_slug: str) -> HttpResponseBase:
    """The sign-in with that answer. What is no XML, or was not asked for, is refused like a false signature."""
    from allauth.socialaccount.providers.saml.views import finish_acs

    try:
        return finish_acs(request, organization_slug=organization_slug)  # type: ignore[no-any-return]
    except (LxmlError, ValueError, PermissionDenied) as error:
        logger.warning("An answer to /accounts/saml/ was refused: %s", str(error) or "nobody had asked for it")
        return _refused(request)


def _refused(request: HttpRequest) -> HttpResponseBase:
    return render(request, "socialaccount/authentication_error.html", status=401)


def _patterns() -> list[URLPattern]:
    found: list[tuple[str, Any]] = []
    if apps.is_installed("allauth.socialaccount.providers.openid_connect"):
        found += [
            ("oidc/<str:provider_id>/login/", to_oidc),
            ("oidc/<str:provider_id>/login/callback/", oidc_answer),
        ]
    if apps.is_installed("allauth.socialaccount.providers.saml"):
        found += [
            ("saml/<str:organization_slug>/login/", to_saml),
            ("saml/<str:organization_slug>/acs/", saml_answer),
            ("saml/<str:organization_slug>/acs/finish/", saml_finish),
        ]
    return [path(f"accounts/{address}", view) for address, view in found]


urlpatterns = _patterns()
