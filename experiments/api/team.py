"""The team itself, its members and its services."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import MemberRole
from experiments.api.plumbing.auth import ADMIN, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag, LinkTemplateOut, LinkTemplates, Whole
from experiments.keeping.retention.policy import MAX_DAYS, MIN_DAYS, set_retention
from experiments.models import Member, Role, Team
from experiments.registry.errors import NotFound
from experiments.registry.teams.access import require
from experiments.registry.teams.founding import MOST_LETTERS, change_team
from experiments.registry.teams.link_templates import set_team_links
from experiments.registry.teams.members import add_service, remove_member, set_role
from experiments.registry.teams.quotas import usage

router = Router(auth=READ, tags=["team"])

RoleName = Literal["viewer", "launcher", "editor", "admin"]


class UseOut(BaseModel):
    """A quota of the team; the staff of the installation sets it."""

    name: str = Field(description="What is counted", examples=["quota_runs_per_day"])
    unit: str = Field(description="bytes, runs or hosts")
    used: int = Field(description="The size of files is as measured in the last hour")
    limit: int


class TeamOut(BaseModel):
    slug: str
    name: str
    requires_second_factor: bool
    members: int = Field(description="People and services")
    created_at: datetime
    retention_days: int | None = Field(
        None, description="Older runs that nothing exempts go to the trash; null = never"
    )
    link_templates: list[LinkTemplateOut] = Field([], description="Links to other tools on the page of each run")
    quotas: list[UseOut] = []

    @classmethod
    def of(cls, team: Team) -> TeamOut:
        return cls(
            slug=team.slug,
            name=team.name,
            requires_second_factor=team.requires_second_factor,
            members=team.members.count(),
            created_at=team.created_at,
            retention_days=team.retention_days,
            link_templates=[LinkTemplateOut(**one) for one in team.link_templates],
            quotas=[
                UseOut(name=use.quota.field, unit=use.quota.unit, used=use.used, limit=use.limit) for use in usage(team)
            ],
        )


class TeamChange(Body):
    name: str | None = Field(None, min_length=1, max_length=MOST_LETTERS)
    requires_second_factor: Flag | None = Field(None, description="Members without a second factor are kept out")
    retention_days: Whole | None = Field(
        None,
        ge=MIN_DAYS,
        le=MAX_DAYS,
        description="After how many days runs that nothing exempts go to the trash; null keeps them for ever",
    )
    link_templates: LinkTemplates | None = Field(None, description="All of them: what is not in the list goes")


class MemberOut(BaseModel):
    user: str
    role: MemberRole
    service: bool = Field(description="True for an identity of the team that tokens act for")

    @classmethod
    def of(cls, member: Member) -> MemberOut:
        return cls(user=member.user.get_username(), role=member.role, service=member.is_service)


class MemberChange(Body):
    role: RoleName


class ServiceIn(Body):
    name: str = Field(
        min_length=1,
        max_length=40,
        description="Small letters, digits and -; its user name is team:name",
        examples=["ci"],
    )
    role: RoleName = "launcher"


@router.get("/team", response=TeamOut)
def get_team(request: HttpRequest) -> TeamOut:
    """The team for which the token or the session speaks."""
    return TeamOut.of(member_of(request).team)


@router.patch("/team", response=TeamOut, auth=ADMIN)
def change_own_team(request: HttpRequest, payload: TeamChange) -> TeamOut:
    """Another name, whether members need a second factor, how long runs are kept, links. For admins; audited."""
    member = member_of(request)
    elsewhere = {"retention_days", "link_templates"}
    with transaction.atomic():
        team = change_team(member, **payload.model_dump(exclude_none=True, exclude=elsewhere))
        if "retention_days" in payload.model_fields_set:
            set_retention(member, payload.retention_days)
            team.retention_days = payload.retention_days
        if payload.link_templates is not None:
            set_team_links(member, [one.model_dump() for one in payload.link_templates])
            team.link_templates = member.team.link_templates
    return TeamOut.of(team)


@router.get("/members", response=list[MemberOut])
@paged
def list_members(request: HttpRequest) -> list[MemberOut]:
    """The members of the team, people and services."""
    members = Member.objects.filter(team=member_of(request).team).select_related("user").order_by("id")
    return [MemberOut.of(member) for member in members]


@router.patch("/members/{user}", response=MemberOut, auth=ADMIN)
def change_member(request: HttpRequest, user: str, payload: MemberChange) -> MemberOut:
    """Give a member another role. For admins; the last admin keeps it."""
    other = _find(member_of(request), user)
    set_role(member_of(request), other, payload.role)
    other.refresh_from_db()
    return MemberOut.of(other)


@router.delete("/members/{user}", response=MemberOut, auth=ADMIN)
def delete_member(request: HttpRequest, user: str) -> MemberOut:
    """Take a member or a service out of the team, with their grants and tokens. For admins."""
    other = _find(member_of(request), user)
    gone = MemberOut.of(other)
    remove_member(member_of(request), other)
    return gone


@router.post("/services", response={201: MemberOut}, auth=ADMIN)
@idempotent
def create_service(request: HttpRequest, payload: ServiceIn) -> Status[MemberOut]:
    """An identity of the team for tokens that stay when people go. It gets grants for hosts as a member does."""
    return Status(201, MemberOut.of(add_service(member_of(request), payload.name, payload.role)))


def _find(member: Member, user: str) -> Member:
    found = Member.objects.select_related("user").filter(team=member.team, user__username=user).first()
    if found is None:
        raise NotFound("There is no such member.")
    require(member, Role.ADMIN)
    return found
