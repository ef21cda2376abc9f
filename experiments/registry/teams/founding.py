"""Teams themselves: founding one, its name, and what it asks of its members."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import IntegrityError, transaction

from experiments.models import Member, Role, Team
from experiments.models.teams import AnyUser
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.naming import MOST_CHARS, check_title
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.second_factor import has_second_factor

MOST_LETTERS = MOST_CHARS


def may_found(user: AnyUser) -> bool:
    """Operators may; everybody may where the installation says so (BENCHHUB_TEAM_FOUNDERS)."""
    if not user.is_authenticated:
        return False
    return user.is_staff or settings.BENCHHUB_TEAM_FOUNDERS == "everyone"


def found_team(user: AnyUser, *, name: str, slug: str) -> Member:
    """A new team with the user as its admin. RequestError names the field that does not fit."""
    if not user.is_authenticated or not may_found(user):
        raise Forbidden("Only operators found teams here; ask one, or to be invited.")
    title = _checked_name(name)
    try:
        validate_slug(slug)
    except ValidationError as error:
        raise RequestError("A short name has only letters, digits, - and _.", field="slug") from error
    if len(slug) > 50:
        raise RequestError("A short name has at most 50 letters.", field="slug")
    try:
        with transaction.atomic():
            team = Team.objects.create(slug=slug, name=title)
            member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
            record(member, "team.found", f"team {slug}", after={"name": title})
    except IntegrityError as error:
        raise Conflict("This short name is taken.", field="slug") from error
    return member


def change_team(member: Member, *, name: str | None = None, requires_second_factor: bool | None = None) -> Team:
    """Another name, or whether members need a second factor: who asks it of others must have one."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        team = Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
        before = _described(team)
        if name is not None:
            team.name = name if name == team.name else _checked_name(name)
        if requires_second_factor and not team.requires_second_factor and not has_second_factor(member.user):
            raise Conflict("Set up a second factor for yourself first, or you would lock yourself out.")
        if requires_second_factor is not None:
            team.requires_second_factor = requires_second_factor
        after = _described(team)
        if after != before:
            team.save(update_fields=["name", "requires_second_factor"])
            record(member, "team.change", f"team {team.slug}", before=before, after=after)
    member.team = team
    return team


def _described(team: Team) -> dict[str, str | bool]:
    return {"name": team.name, "requires_second_factor": team.requires_second_factor}


def _checked_name(name: str) -> str:
    check_title(name.strip(), "A team")
    return " ".join(name.split())
