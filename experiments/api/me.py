"""Who am I."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from experiments.api.plumbing.auth import READ, caller_of

router = Router(auth=READ, tags=["team"])


class MeOut(BaseModel):
    user: str
    team: str
    team_name: str
    role: str
    scopes: list[str] | None = None
    """Of the token; None for a session."""


@router.get("/me", response=MeOut)
def me(request: HttpRequest) -> MeOut:
    """The acting member: user, team and role, and the scopes of the token."""
    caller = caller_of(request)
    member = caller.member
    return MeOut(
        user=member.user.get_username(),
        team=member.team.slug,
        team_name=member.team.name,
        role=member.role,
        scopes=sorted(caller.scopes) if caller.scopes is not None else None,
    )
