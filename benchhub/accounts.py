"""Who may have an account, and what a sign-in brings along: an invitation, groups of the identity provider."""

from __future__ import annotations

import base64
import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.signals import user_logged_in, user_signed_up
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.dispatch import receiver
from django.http import HttpRequest

from benchhub.provider_link import insist_on_tls, refusal, said_verified
from experiments.registry.errors import RequestError
from experiments.registry.hosts.keys import SECOND_FACTOR_ROW, seal, unseal
from experiments.registry.teams.groups import follow_groups
from experiments.registry.teams.invitations import accept, find
from frontend.pages.team.invitations import INVITATION

logger = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """Only who was invited signs up by themselves."""

    error_messages = DefaultAccountAdapter.error_messages | dict.fromkeys(
        ("username_password_mismatch", "email_password_mismatch"), "User name, mail address or password are not right."
    )

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return find(request.session.get(INVITATION, "")) is not None


class SocialAccountAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Whoever the identity provider vouches for gets an account, unless the installation says otherwise."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return bool(settings.BENCHHUB_SSO_SIGNUP) or bool(super().is_open_for_signup(request, sociallogin))

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        insist_on_tls(session)
        return session

    def populate_user(self, request: HttpRequest, sociallogin: Any, data: Any) -> Any:
        """Comes before an account with the same address is looked for."""
        for address in sociallogin.email_addresses:
            address.verified = said_verified(address.verified)
        return super().populate_user(request, sociallogin, data)

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        if sociallogin.provider.id == "openid_connect" and (why := refusal(sociallogin.account.extra_data)):
            logger.warning("An answer to /accounts/oidc/ was refused: %s", why)
            raise PermissionDenied(why)


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Secrets of authenticator apps and recovery codes are encrypted with the key file, like SSH keys."""

    def encrypt(self, text: str) -> str:
        return base64.b64encode(seal(text, row=SECOND_FACTOR_ROW)).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return unseal(base64.b64decode(encrypted_text), row=SECOND_FACTOR_ROW)


@receiver(user_signed_up)
def join_by_invitation(request: HttpRequest, user: User, **_arguments: Any) -> None:
    """A new account that an invitation led to is a member at once."""
    text = request.session.pop(INVITATION, "")
    if not text:
        return
    try:
        accept(user, text)
    except RequestError:
        return  # revoked while the form was filled in: the person sees that they belong to no team


@receiver(user_logged_in)
def join_by_groups(user: User, **arguments: Any) -> None:
    """Memberships follow the groups that the identity provider names at this sign-in."""
    login = arguments.get("sociallogin")
    if login is not None and settings.BENCHHUB_SSO_GROUPS:
        follow_groups(user, groups_of(login.account.extra_data), settings.BENCHHUB_SSO_GROUPS)


def groups_of(claims: Any) -> frozenset[str]:
    """The person's groups in what the provider said: a claim of the ID token or of userinfo, or a SAML attribute."""
    if not isinstance(claims, dict):
        return frozenset()
    found: set[str] = set()
    for part in (claims, claims.get("userinfo"), claims.get("id_token")):
        said = part.get(settings.BENCHHUB_SSO_GROUPS_CLAIM) if isinstance(part, dict) else None
        entries = [said] if isinstance(said, str) else said if isinstance(said, list) else []
        found |= {entry for entry in entries if isinstance(entry, str)}
    return frozenset(found)
