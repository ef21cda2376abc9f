"""For whom a token acts."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from experiments.models import Member, Token


@dataclass(frozen=True)
class Bearer:
    """A live token, and the member of its team whose rights it has; team and user of both are loaded."""

    token: Token
    member: Member


def bearer_of(public_id: str) -> Bearer | None:
    """Whose token this is. None when it is revoked or expired, or its owner's account or membership has ended."""
    live = Token.objects.filter(revoked_at=None, expires_at__gt=timezone.now(), owner__is_active=True)
    token = live.select_related("team", "owner").filter(public_id=public_id).first()
    member = token and Member.objects.filter(team=token.team, user=token.owner).first()
    if token is None or member is None:
        return None
    member.team, member.user = token.team, token.owner
    return Bearer(token, member)
