"""Who belongs to a team and in which role. A team always keeps an admin."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import transaction

from experiments.errors import Conflict, RequestError
from experiments.models import Member, Role, Team
from experiments.teams.access import require
from experiments.teams.audit import record


def add_member(member: Member, username: str, role: str) -> tuple[Member, str]:
    """Let a user into the team. An unknown name gets an account; its password is returned once, "" for a known one."""
    require(member, Role.ADMIN)
    _check_role(role)
    users = get_user_model()
    name = username.strip()
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
            raise RequestError(f"{name} belongs to the team already.", field="username")
        added = Member.objects.create(team=member.team, user=user, role=role)
        record(member, "member.add", f"member {name}", after={"role": role, "new_account": bool(password)})
    return added, password


def set_role(member: Member, other: Member, role: str) -> None:
    """Give another role to a member of the same team."""
    require(member, Role.ADMIN)
    _check_role(role)
    with transaction.atomic():
        before = _lock(member, other).role
        if before == Role.ADMIN and role != Role.ADMIN:
            _keep_an_admin(other)
        Member.objects.filter(pk=other.pk).update(role=role)
        record(
            member, "member.role", f"member {other.user.get_username()}", before={"role": before}, after={"role": role}
        )


def remove_member(member: Member, other: Member) -> None:
    """Take a member out of the team, with the grants and the tokens of the team that they made."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        before = _lock(member, other).role
        if before == Role.ADMIN:
            _keep_an_admin(other)
        member.team.tokens.filter(created_by_id=other.user_id).delete()
        Member.objects.filter(pk=other.pk).delete()
        record(member, "member.remove", f"member {other.user.get_username()}", before={"role": before})


def _lock(member: Member, other: Member) -> Member:
    """The other's row as it is now. The team's row is the lock: two admins cannot remove each other at once."""
    Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
    found = Member.objects.filter(team_id=member.team_id, pk=other.pk).first()
    if found is None:
        raise Conflict("This member does not belong to the team any more.")
    return found


def _keep_an_admin(other: Member) -> None:
    if not Member.objects.filter(team_id=other.team_id, role=Role.ADMIN).exclude(pk=other.pk).exists():
        raise Conflict("A team needs an admin; make somebody else one first.")


def _check_role(role: str) -> None:
    if role not in Role.values:
        raise RequestError(f"There is no role {role!r}; known: {', '.join(Role.values)}.", field="role")
