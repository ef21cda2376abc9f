"""The second factor: who has one, and teams that let nobody in without."""

from __future__ import annotations

from allauth.mfa.models import Authenticator

from experiments.models import Member
from experiments.models.teams import AnyUser

WHAT_TO_DO = "asks its members for a second factor at sign-in. Set one up under Account, Second factor."


def has_second_factor(user: AnyUser) -> bool:
    """Whether the account has an authenticator app or a security key; recovery codes alone are none."""
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
    return bool(Authenticator.objects.filter(user_id=user.pk, type__in=kinds).exists())


def lacks_second_factor(member: Member) -> bool:
    """Whether the team asks for a second factor and the person has none. A service has none to show."""
    return member.team.requires_second_factor and not member.is_service and not has_second_factor(member.user)
