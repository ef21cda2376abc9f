"""How a page gets its team: `/t/<team_slug>/...`, a membership, and a role that is enough."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, cast
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme

from experiments.models import Member, Role, Team
from experiments.registry.errors import Busy, Forbidden, NotFound
from experiments.registry.teams.access import membership, require
from experiments.registry.teams.second_factor import WHAT_TO_DO, lacks_second_factor


class TeamRequest(HttpRequest):
    """A request of a signed-in member; `team` is the team of the URL."""

    user: User
    team: Team
    member: Member


View = Callable[..., HttpResponseBase]
AsyncView = Callable[..., Coroutine[Any, Any, HttpResponseBase]]

LAST_TEAM = "last_team"


def team_view(role: Role = Role.VIEWER) -> Callable[[View], View]:
    """A view of one team's page: `view(request: TeamRequest, ...)`, the slug taken out of its arguments.

    Anonymous users go to the login page; an unknown team and another one's give the same 404; a role that is not
    enough gives the 403 page with the reason. Who lacks the second factor that the team asks for is sent to set one up.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def page(request: HttpRequest, team_slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            team_request = _enter(request, membership(request.user, team_slug), role)
            if lacks_second_factor(team_request.member):
                return _to_second_factor(team_request)
            if request.session.get(LAST_TEAM) != team_slug:
                request.session[LAST_TEAM] = team_slug
            try:
                return view(team_request, *args, **kwargs)
            except NotFound as error:
                raise Http404(error.message) from error
            except Forbidden as error:
                raise PermissionDenied(error.message) from error
            except Busy as error:
                return HttpResponse(error.message, "text/plain", 503, headers={"Retry-After": "10"})

        return page

    return decorate


def async_team_view(role: Role = Role.VIEWER) -> Callable[[AsyncView], AsyncView]:
    """`team_view` for streams: the same answers, without blocking the event loop."""

    def decorate(view: AsyncView) -> AsyncView:
        @wraps(view)
        async def page(request: HttpRequest, team_slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            user = await request.auser()
            if not user.is_authenticated:
                return _to_sign_in(request)
            member = await sync_to_async(membership)(user, team_slug)
            team_request = _enter(request, member, role)
            if await sync_to_async(lacks_second_factor)(team_request.member):
                return await sync_to_async(_to_second_factor)(team_request)
            return await view(team_request, *args, **kwargs)

        return page

    return decorate


def _to_sign_in(request: HttpRequest) -> HttpResponseBase:
    """The sign-in page and back; a part of a page gets 401, which leaves the page as it is with what is typed there."""
    if request.headers.get("HX-Request"):
        return HttpResponse("You have been signed out.", status=401, content_type="text/plain")
    asked, page = request.get_full_path(), request.headers.get("Referer", "")
    if request.method == "POST" and url_has_allowed_host_and_scheme(page, {request.get_host()}):
        asked = urlsplit(page)._replace(scheme="", netloc="").geturl()  # what only takes forms cannot be opened
    return redirect_to_login(asked)


def _to_second_factor(request: TeamRequest) -> HttpResponseBase:
    messages.error(request, f"{request.team.name} {WHAT_TO_DO}")
    return redirect("mfa_index")


def _enter(request: HttpRequest, member: Member | None, role: Role) -> TeamRequest:
    if member is None:
        raise Http404("No such team.")
    team_request = cast(TeamRequest, request)
    team_request.member = member
    team_request.team = member.team
    try:
        require(member, role)
    except Forbidden as error:
        raise PermissionDenied(error.message) from error
    return team_request
