"""Memberships that follow the groups of the identity provider: looked at again at each sign-in."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import User
from django.db import transaction

from experiments.models import Member, Role, Team
from experiments.registry.teams.audit import record
from experiments.registry.teams.group_rules import EVERYONE, GroupRule
from experiments.registry.teams.members import end_membership, is_last_admin, revoke_invitations


def follow_groups(user: User, groups: Collection[str], rules: Collection[GroupRule]) -> None:
    """Give and take the memberships that the rules speak of.

    Those that a person made stay as they are, and a team's last admin stays one.
    """
    wanted: dict[str, Role] = {}
    for rule in rules:
        if rule.group == EVERYONE or rule.group in groups:
            role, known = Role(rule.role), wanted.get(rule.slug)
            wanted[rule.slug] = role if known is None or role.covers(known) else known
    with transaction.atomic():
        for team in Team.objects.filter(slug__in={rule.slug for rule in rules}).order_by("pk"):
            _settle(user, team, wanted.get(team.slug))


def _settle(user: User, team: Team, role: Role | None) -> None:
    member = Member.objects.filter(user=user, team=team).first()
    subject = f"member {user.get_username()}"
    if member is None:
        if role is not None:
            made = {"role": role, "by_group": True}
            member, is_new = Member.objects.get_or_create(user=user, team=team, defaults=made)
            if is_new:  # else they sign in twice at once
                record(member, "member.by_group", subject, after={"role": role})
    elif not member.by_group or role == member.role or is_last_admin(member):
        return
    elif role is None:
        record(member, "member.by_group", subject, before={"role": member.role})
        end_membership(member)
    else:
        record(member, "member.by_group", subject, before={"role": member.role}, after={"role": role})
        if not role.covers(Role.ADMIN):
            revoke_invitations(member)
        Member.objects.filter(pk=member.pk).update(role=role)
