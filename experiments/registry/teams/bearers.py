"""For whom a token acts."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist
from django.db.models.functions import Now

from experiments.models import Member, Token


@dataclass(frozen=True)
class Bearer:
    """A live token, and the member of its team whose rights it has; the team is loaded."""

    token: Token
    member: Member


def bearer_of(public_id: str) -> Bearer | None:
    """Whose token this is. None when it is revoked or expired, or its owner's account or membership has ended."""
    try:
        token = Token.objects.get(public_id=public_id, revoked_at=None, expires_at__gt=Now(), owner__is_active=True)
        member = Member.objects.select_related("team").get(team_id=token.team_id, user_id=token.owner_id)
    except ObjectDoesNotExist:
        return None
    return Bearer(token, member)
