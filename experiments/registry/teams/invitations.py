"""Invitations: an admin asks somebody into the team, by mail or by a link. One seat, seven days, taken back at will."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from experiments.models import Invitation, Member, Role, Team
from experiments.models.teams import AnyUser
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.members import check_role

VALID_FOR = timedelta(days=7)
MOST_OPEN = 200
_PREFIX = "bh_invitation_"  # what begins like a token is hidden in logs like one


@dataclass(frozen=True)
class Asked:
    """An invitation with its link, which cannot be shown again; `problem` says why the mail did not go out, or ""."""

    invitation: Invitation
    link: str
    problem: str = ""


def open_invitations(member: Member) -> QuerySet[Invitation]:
    """Those of the member's team that somebody may still take, the newest first."""
    found: QuerySet[Invitation] = Invitation.objects.for_team(member.team).filter(
        accepted_at=None, revoked_at=None, expires_at__gt=Now()
    )
    return found.select_related("invited_by").order_by("-id")


def invite(member: Member, role: str, email: str = "") -> Asked:
    """A new invitation; with an address it is mailed there, and the link is nobody else's to see."""
    require(member, Role.ADMIN)
    check_role(role)
    address = _checked(email)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        if open_invitations(member).count() >= MOST_OPEN:
            raise Conflict(f"The team has {MOST_OPEN} open invitations already; revoke some first.")
        invitation = Invitation.objects.create(
            team=member.team,
            email=address,
            role=role,
            secret_hash=_hash(secret),
            invited_by_id=member.user_id,
            expires_at=database_now() + VALID_FOR,
        )
        record(member, "invitation.send", f"invitation {invitation}", after={"role": role, "email": address})
    return _hand_out(invitation, secret)


def resend(member: Member, invitation: Invitation) -> Asked:
    """The same invitation under a new link for another seven days; the old link ends."""
    require(member, Role.ADMIN)
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        changed = (
            open_invitations(member)
            .filter(pk=invitation.pk)
            .update(secret_hash=_hash(secret), expires_at=database_now() + VALID_FOR)
        )
        if not changed:
            raise Conflict("This invitation was used or revoked, or is too old; make a new one.")
        record(member, "invitation.resend", f"invitation {invitation}")
    invitation.refresh_from_db()
    return _hand_out(invitation, secret)


def revoke_invitation(member: Member, invitation: Invitation) -> None:
    """End an open invitation; its link leads nowhere from now on."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        if not open_invitations(member).filter(pk=invitation.pk).update(revoked_at=database_now()):
            raise Conflict("This invitation was used or revoked already, or is too old.")
        record(member, "invitation.revoke", f"invitation {invitation}", before={"role": invitation.role})


def find(text: str) -> Invitation | None:
    """The open invitation of a link, or None: unknown, used, revoked and old ones look the same."""
    return _open(text).select_related("team", "invited_by").first()


def team_joined_by(user: AnyUser, text: str) -> Team | None:
    """The team into which this link has let this user already: they may come back by it."""
    if not user.is_authenticated:
        return None
    found = Invitation.objects.select_related("team").filter(secret_hash=_hash_of(text), accepted_by=user).first()
    return found.team if found is not None else None


def accept(user: AnyUser, text: str) -> Member:
    """Make the user a member with the invitation's role. NotFound when it is not open any more."""
    with transaction.atomic():
        invitation = _open(text).select_for_update(of=("self",)).select_related("team").first()
        if invitation is None or not user.is_authenticated:
            raise NotFound("This invitation was used or withdrawn, or is older than 7 days. Ask for a new one.")
        member, is_new = Member.objects.get_or_create(
            team=invitation.team, user=user, defaults={"role": invitation.role}
        )
        if not is_new:
            raise Conflict(f"You belong to {invitation.team.name} already.")
        invitation.accepted_at, invitation.accepted_by = database_now(), user
        invitation.save(update_fields=["accepted_at", "accepted_by"])
        record(
            member,
            "invitation.accept",
            f"member {user.get_username()}",
            after={"role": member.role, "invitation": str(invitation)},
        )
    return member


def _open(text: str) -> QuerySet[Invitation]:
    found: QuerySet[Invitation] = Invitation.objects.filter(
        secret_hash=_hash_of(text), accepted_at=None, revoked_at=None, expires_at__gt=Now()
    )
    return found


def _hash_of(text: str) -> str:
    """Of the secret in a link's text; no invitation has the hash of a text that is none."""
    return _hash(text.removeprefix(_PREFIX)) if text.startswith(_PREFIX) else ""


def _hash(secret: str) -> str:
    """Without a key or salt: the secret has 256 random bits, which nobody finds by trying."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _checked(email: str) -> str:
    address = email.strip()
    if not address:
        return ""
    try:
        validate_email(address)
    except ValidationError as error:
        raise RequestError("This is no mail address.", field="email") from error
    if not settings.BENCHHUB_SENDS_MAIL:
        raise RequestError(
            "This installation sends no mail (EMAIL_HOST is not set); leave the address empty and hand the link over.",
            field="email",
        )
    return address


def _hand_out(invitation: Invitation, secret: str) -> Asked:
    link = f"{settings.BENCHHUB_URL}/invitations/{_PREFIX}{secret}/"
    if not invitation.email:
        return Asked(invitation, link)
    try:
        _mail(invitation, link).send()
    except OSError as error:  # SMTPException is one
        return Asked(invitation, "", f"The mail to {invitation.email} could not be sent: {error}. Send it again later.")
    invitation.sent_at = database_now()
    invitation.save(update_fields=["sent_at"])
    return Asked(invitation, "")


def _mail(invitation: Invitation, link: str) -> EmailMessage:
    asker = invitation.invited_by.get_username() if invitation.invited_by else "An admin"
    body = (
        f"{asker} asks you to join the team {invitation.team.name} in BenchHub as {invitation.role}.\n\n{link}\n\n"
        f"The link works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC. "
        "If you do not know what this is about, ignore this mail."
    )
    # A name of the team with a line break would end the headers.
    subject = " ".join(f"[BenchHub] Join {invitation.team.name}".split())
    return EmailMessage(subject, body, to=[invitation.email])
