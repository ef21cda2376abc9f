"""Invitations into the team."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import MemberRole
from experiments.api.plumbing.auth import ADMIN, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import MAX_ID, Body
from experiments.api.team import RoleName
from experiments.models import Invitation, Member, Role
from experiments.registry.errors import NotFound
from experiments.registry.teams.access import require
from experiments.registry.teams.invitations import Asked, invite, open_invitations, resend, revoke_invitation

router = Router(auth=ADMIN, tags=["team"])


class InvitationOut(BaseModel):
    id: int
    email: str = Field(description="Where the link was mailed; empty for one that was handed over")
    role: MemberRole
    invited_by: str | None
    created_at: datetime
    sent_at: datetime | None
    expires_at: datetime

    @classmethod
    def of(cls, invitation: Invitation) -> InvitationOut:
        return cls(
            id=invitation.pk,
            email=invitation.email,
            role=invitation.role,
            invited_by=invitation.invited_by.get_username() if invitation.invited_by else None,
            created_at=invitation.created_at,
            sent_at=invitation.sent_at,
            expires_at=invitation.expires_at,
        )


class AskedOut(InvitationOut):
    link: str = Field(description="Shown once, to hand over; empty when it was mailed")
    problem: str = Field(description="Why the mail did not go out; empty when it did")

    @classmethod
    def asked(cls, asked: Asked) -> AskedOut:
        return cls(**InvitationOut.of(asked.invitation).model_dump(), link=asked.link, problem=asked.problem)


class InvitationIn(Body):
    role: RoleName = "launcher"
    email: str = Field(
        "", max_length=254, description="Empty: no mail, the answer has the link", examples=["a@example.org"]
    )


@router.get("", response=list[InvitationOut])
@paged
def list_invitations(request: HttpRequest) -> list[InvitationOut]:
    """The open invitations, the newest first. For admins."""
    require(member_of(request), Role.ADMIN)
    return [InvitationOut.of(one) for one in open_invitations(member_of(request))]


@router.post("", response={201: AskedOut})
def create_invitation(request: HttpRequest, payload: InvitationIn) -> Status[AskedOut]:
    """Ask somebody into the team, by mail or by a link that is shown once. It works once, for seven days."""
    return Status(201, AskedOut.asked(invite(member_of(request), payload.role, payload.email)))


@router.post("/{invitation_id}/resend", response=AskedOut)
def resend_invitation(request: HttpRequest, invitation_id: int) -> AskedOut:
    """A new link for another seven days; the old one ends."""
    return AskedOut.asked(resend(member_of(request), _find(member_of(request), invitation_id)))


@router.delete("/{invitation_id}", response=InvitationOut)
def delete_invitation(request: HttpRequest, invitation_id: int) -> InvitationOut:
    """End an open invitation; its link leads nowhere from now on."""
    invitation = _find(member_of(request), invitation_id)
    revoke_invitation(member_of(request), invitation)
    return InvitationOut.of(invitation)


def _find(member: Member, invitation_id: int) -> Invitation:
    """Also one that is not open any more: what is done with it says so."""
    found = Invitation.objects.for_team(member.team).filter(pk=min(invitation_id, MAX_ID)).first()
    if found is None:
        raise NotFound("There is no such invitation.")
    invitation: Invitation = found
    return invitation
