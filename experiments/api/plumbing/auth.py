"""Who calls: a token, or the browser's session with a CSRF check. Either way a member of one team."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from django.conf import settings
from django.http import HttpRequest
from ninja.errors import HttpError
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from experiments.api.plumbing.limits import INGEST, ORDINARY, SITE_WORK, Policy, spend
from experiments.models import Member, Role
from experiments.registry.errors import Forbidden, NotFound
from experiments.registry.teams.access import membership
from experiments.registry.teams.bearers import bearer_of
from experiments.registry.teams.second_factor import WHAT_TO_DO, lacks_second_factor
from experiments.registry.teams.tokens import authenticate

Scope = Literal["read", "launch", "write", "admin", "work"]


@dataclass(frozen=True)
class Caller:
    """The acting member; `scopes` None = a session, which may do what the member may and has no `token_id`.

    `site_id`: of a token with the scope `work`, the site that it is for.
    """

    member: Member
    scopes: frozenset[str] | None
    token_id: str = ""
    site_id: int | None = None


def member_of(request: HttpRequest) -> Member:
    """The member for whom this request acts."""
    return cast(Caller, request.auth).member  # type: ignore[attr-defined]


def caller_of(request: HttpRequest) -> Caller:
    """The member and the scopes that the authentication of this request found."""
    return cast(Caller, request.auth)  # type: ignore[attr-defined]


class TokenAuth(HttpBearer):
    """`Authorization: Bearer bh_<id>_<secret>` with the scope that the operation needs."""

    def __init__(self, scope: Scope, policy: Policy = ORDINARY) -> None:
        super().__init__()
        self.scope = scope
        self.policy = policy

    def authenticate(self, request: HttpRequest, token: str) -> Caller:
        return self.caller(request, token)

    def caller(self, request: HttpRequest, text: str) -> Caller:
        """The token's creator as a member of the token's team, so its rights never exceed the member's."""
        refuse_nul(request)
        bearer = authenticate(text)
        if bearer is None:
            # Not None: a request with a token must not fall back to a session.
            raise HttpError(401, "Unauthorized")
        token, member = bearer.token, bearer.member
        spend(request, token.public_id, self.policy)
        if self.scope not in token.scopes:
            raise Forbidden(f"This needs a token with the scope {self.scope}.")
        _insist_on_second_factor(member)
        return Caller(member, frozenset(token.scopes), token.public_id, token.site_id)


class WorkAuth(TokenAuth):
    """A token of a site's worker. Nobody else comes in, no session either; its owner must still be an admin."""

    def __init__(self) -> None:
        super().__init__("work", SITE_WORK)

    def caller(self, request: HttpRequest, text: str) -> Caller:
        caller = super().caller(request, text)
        if caller.site_id is None or caller.member.role != Role.ADMIN:
            raise Forbidden("This needs a token with the scope work, bound to a site, of an admin of the team.")
        return caller


class SessionAuth(APIKeyCookie):
    """The session of a signed-in person. The team is named by `X-Team` or `?team=`, else it is the first one."""

    param_name = settings.SESSION_COOKIE_NAME

    def __init__(self, scope: Scope) -> None:
        super().__init__(csrf=True)
        self.scope = scope

    def __call__(self, request: HttpRequest) -> Any:
        return self.authenticate(request, None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        return self.caller(request)

    def caller(self, request: HttpRequest) -> Caller | None:
        refuse_nul(request)
        if not request.user.is_authenticated:
            return None
        if check_csrf(request) is not None:
            raise HttpError(403, "CSRF")
        slug = request.headers.get("X-Team") or request.GET.get("team", "")
        if slug:
            member = membership(request.user, slug)
        else:
            found = Member.objects.select_related("team", "user").filter(user=request.user).order_by("id")
            member = found.first()
        if member is None:
            raise NotFound("There is no such team.", field="team" if slug else "")
        _insist_on_second_factor(member)
        return Caller(member, None)


def still_allowed(caller: Caller) -> bool:
    """Whether a caller who was let in would be let in again; for answers that last."""
    member = Member.objects.select_related("team", "user").filter(pk=caller.member.pk, user__is_active=True).first()
    return (
        member is not None
        and not lacks_second_factor(member)
        and (not caller.token_id or bearer_of(caller.token_id) is not None)
    )


def _insist_on_second_factor(member: Member) -> None:
    if lacks_second_factor(member):
        raise Forbidden(f"{member.team.name} {WHAT_TO_DO}")


def refuse_nul(request: HttpRequest) -> None:
    """PostgreSQL knows no NUL in text, so nothing can have such a name."""
    if "\0" in request.path or "\0" in request.headers.get("X-Team", "") or "\0" in request.GET.get("team", ""):
        raise NotFound("There is nothing with a NUL character in its name.")


READ, LAUNCH, WRITE, ADMIN = (
    [TokenAuth(scope), SessionAuth(scope)] for scope in cast(tuple[Scope, ...], ("read", "launch", "write", "admin"))
)
SEND = [TokenAuth("launch", INGEST), SessionAuth("launch")]
"""For results that were measured elsewhere: the scope launch, with a limit of their own."""
WORK = [WorkAuth()]
"""For the workers of a site, and for nothing else."""
