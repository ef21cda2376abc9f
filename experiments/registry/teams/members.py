"""Who belongs to a team and in which role. A team always keeps an admin."""

from __future__ import annotations

import re
import secrets

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from experiments.models import Invitation, Member, Role, Team, Token
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

_SERVICE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
BETWEEN = ":"  # no person's user name has it


def add_member(member: Member, username: str, role: str) -> tuple[Member, str]:
    """Let a user into the team. An unknown name gets an account; its password is returned once, "" for a known one."""
    require(member, Role.ADMIN)
    check_role(role)
    users = get_user_model()
    name = username.strip()
    if BETWEEN in name:
        raise RequestError("A user name has no colon.", field="username")
    with transaction.atomic():
        user, password = users.objects.filter(username=name).first(), ""
        if user is None:
            user, password = users(username=name), secrets.token_urlsafe(12)
            try:
                user.full_clean(exclude=["password", "email"])
            except ValidationError as error:
                raise RequestError(" ".join(error.messages), field="username") from error
            user.set_password(password)
            user.save()
        if Member.objects.filter(team=member.team, user=user).exists():
            raise Conflict(f"{name} belongs to the team already.", field="username")
        added = Member.objects.create(team=member.team, user=user, role=role)
        record(member, "member.add", f"member {name}", after={"role": role, "new_account": bool(password)})
    return added, password


def add_service(member: Member, name: str, role: str) -> Member:
    """An identity of the team itself, for tokens that stay when people go. Nobody can sign in as it."""
    require(member, Role.ADMIN)
    check_role(role)
    if not _SERVICE_NAME.fullmatch(name):
        raise RequestError("Name it with up to 40 small letters, digits and -, for example ci.", field="name")
    users = get_user_model().objects
    with transaction.atomic():
        user, _ = users.get_or_create(username=f"{member.team.slug}{BETWEEN}{name}")
        if Member.objects.filter(team=member.team, user=user).exists():
            raise Conflict(f"There is a service {name} already.", field="name")
        user.set_unusable_password()
        user.is_active = True  # one that was removed comes back under its name, without its tokens
        user.save()
        added = Member.objects.create(team=member.team, user=user, role=role, is_service=True)
        record(member, "member.add", f"service {user.get_username()}", after={"role": role})
    return added


def set_role(member: Member, other: Member, role: str) -> None:
    """Give another role to a member of the same team."""
    require(member, Role.ADMIN)
    check_role(role)
    with transaction.atomic():
        before = _lock(member, other).role
        if before == Role.ADMIN and role != Role.ADMIN:
            _keep_an_admin(other)
            revoke_invitations(other)
        Member.objects.filter(pk=other.pk).update(role=role, by_group=False)
        record(
            member, "member.role", f"member {other.user.get_username()}", before={"role": before}, after={"role": role}
        )


def remove_member(member: Member, other: Member) -> None:
    """Take a member out of the team, with the grants, the open invitations and the tokens that they made for it."""
    require(member, Role.ADMIN)
    _take_out(member, other, "member.remove")


def leave(member: Member) -> None:
    """Leave the team by oneself."""
    _take_out(member, member, "member.leave")


def check_role(role: str) -> None:
    """RequestError for a word that is no role."""
    if role not in Role.values:
        raise RequestError(f"There is no role {role!r}; known: {', '.join(Role.values)}.", field="role")


def _take_out(member: Member, other: Member, action: str) -> None:
    with transaction.atomic():
        before = _lock(member, other).role
        if before == Role.ADMIN:
            _keep_an_admin(other)
        end_membership(other)
        if other.is_service:
            get_user_model().objects.filter(pk=other.user_id).update(is_active=False)
        record(member, action, f"member {other.user.get_username()}", before={"role": before})


def end_membership(other: Member) -> None:
    """End it with the grants, the open invitations and the tokens that they made for the team."""
    revoke_invitations(other)
    Token.objects.filter(team_id=other.team_id, owner_id=other.user_id).delete()
    Member.objects.filter(pk=other.pk).delete()


def revoke_invitations(other: Member) -> None:
    """Nobody who is admin no longer has a link in hand that lets them, or a friend, back in."""
    made = Invitation.objects.filter(team_id=other.team_id, invited_by_id=other.user_id)
    made.filter(accepted_at=None, revoked_at=None).update(revoked_at=timezone.now())


def _lock(member: Member, other: Member) -> Member:
    """The other's row as it is now. The team's row is the lock: two admins cannot remove each other at once."""
    Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
    found = Member.objects.filter(team_id=member.team_id, pk=other.pk).first()
    if found is None:
        raise Conflict("This member does not belong to the team any more.")
    return found


def is_last_admin(member: Member) -> bool:
    """Whether the team would be without an admin who can sign in if this person were none."""
    people = Member.objects.filter(team_id=member.team_id, role=Role.ADMIN, is_service=False, user__is_active=True)
    return list(people.values_list("pk", flat=True)[:2]) == [member.pk]


def _keep_an_admin(other: Member) -> None:
    """Somebody who can sign in must stay able to let others in."""
    if is_last_admin(other):
        raise Conflict("A team needs an admin; make somebody else one first.")
