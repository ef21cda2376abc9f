"""Who am I."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.choices import MemberRole
from experiments.api.plumbing.auth import READ, WRITE, caller_of, member_of
from experiments.api.shapes import Body, Flag
from experiments.models import Member
from experiments.telling.notifying.mails import change_choices

router = Router(auth=READ, tags=["team"])


class MeOut(BaseModel):
    user: str
    team: str
    team_name: str
    role: MemberRole
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


class MailsOut(BaseModel):
    """Which mails the caller gets of this team."""

    verdicts: bool = Field(description="An experiment reached its verdict")
    failed_runs: bool = Field(description="A run failed or was lost")
    alerts: bool = Field(description="A change of level was found, or a rule of the team was broken")

    @classmethod
    def of(cls, member: Member) -> MailsOut:
        return cls(verdicts=member.mails_verdicts, failed_runs=member.mails_failed_runs, alerts=member.mails_alerts)


class MailsChange(Body):
    """What is left out stays."""

    verdicts: Flag | None = None
    failed_runs: Flag | None = None
    alerts: Flag | None = None


@router.get("/me/mails", response=MailsOut)
def get_mails(request: HttpRequest) -> MailsOut:
    """Which mails the caller gets of this team."""
    return MailsOut.of(member_of(request))


@router.patch("/me/mails", response=MailsOut, auth=WRITE)
def change_mails(request: HttpRequest, payload: MailsChange) -> MailsOut:
    """Choose the mails of one's own; an account needs a mail address for them."""
    given = payload.model_dump(exclude_none=True)
    return MailsOut.of(change_choices(member_of(request), {f"mails_{name}": value for name, value in given.items()}))
