"""The start page: straight to a team's overview."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static

from experiments.registry.teams.access import first_team, membership
from frontend.shared.access import LAST_TEAM


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The overview of the team seen last, else of the first one."""
    last = membership(request.user, request.session.get(LAST_TEAM, ""))
    team = last.team if last else first_team(request.user)
    if team is None:
        return render(request, "home/no_team.html")
    return redirect("overview", team.slug)


def favicon(_request: HttpRequest) -> HttpResponse:
    """Browsers ask for it on pages that name no icon, such as the reference of the API."""
    return redirect(static("favicon.svg"), permanent=True)
