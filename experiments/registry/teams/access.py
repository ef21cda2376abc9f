"""Who may do what. Teams are found here; what a user may not see does not exist for them."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.models import Host, HostGrant, Member, Role, Team
from experiments.models.teams import AnyUser
from experiments.registry.errors import Forbidden, RequestError


def membership(user: AnyUser, slug: str) -> Member | None:
    """The user's membership of the team, or None: for the caller the same as a team that does not exist."""
    if not user.is_authenticated:
        return None
    return Member.objects.select_related("team", "user").filter(user=user, team__slug=slug).first()


def acting_member(team_id: int, user_id: int | None) -> Member | None:
    """The member for whom something acts by itself later; None when they left the team or their account was closed."""
    if user_id is None:
        return None
    found = Member.objects.select_related("team", "user").filter(team_id=team_id, user_id=user_id, user__is_active=True)
    return found.first()


def first_team(user: AnyUser) -> Team | None:
    """The team that the start page opens: the one the user joined first."""
    if not user.is_authenticated:
        return None
    member = Member.objects.select_related("team").filter(user=user).order_by("id").first()
    return member.team if member else None


def require(member: Member, role: Role) -> None:
    """Forbidden when the member's role does not cover `role`."""
    if not Role(member.role).covers(role):
        raise Forbidden(f"This needs the role {role.label.lower()}; yours is {member.role}.")


def may_launch_on(member: Member, host: Host) -> bool:
    """Launching on a host is a grant of its own; admins have it on every host of their team."""
    if host.team_id != member.team_id:
        return False
    if Role(member.role) == Role.ADMIN:
        return True
    if not Role(member.role).covers(Role.LAUNCHER):
        return False
    return HostGrant.objects.filter(host=host, member=member).exists()


def may_launch_on_all(member: Member, hosts: Iterable[Host]) -> bool:
    """Whether what needs all of these hosts may be launched by the member."""
    return all(may_launch_on(member, host) for host in {host.pk: host for host in hosts}.values())


def require_launch_on(member: Member, *hosts: Host) -> None:
    """Forbidden when the member may not launch on one of the hosts; RequestError for a host of another team."""
    for host in hosts:
        if host.team_id != member.team_id:
            raise RequestError("All parts of a run must belong to one team, which is yours.")
        if not may_launch_on(member, host):
            raise Forbidden(f"You may not launch runs on {host.name}; ask an admin of {member.team.name} for a grant.")
