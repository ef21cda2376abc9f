"""The documentation as pages of the product."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from experiments.access import first_team, membership
from frontend.access import LAST_TEAM, TeamRequest, team_view
from frontend.help import INDEX, help_page


@require_safe
@team_view()
def help_topic(request: TeamRequest, topic: str = INDEX) -> HttpResponse:
    """One page of the documentation, or its index."""
    try:
        page = help_page(topic)
    except KeyError as error:
        raise Http404("There is no such page of help.") from error
    return render(request, "help/page.html", {"page": page, "is_index": topic == INDEX})


@require_safe
@login_required
def help_anywhere(request: HttpRequest, topic: str) -> HttpResponse:
    """`/help/validity/`: the page within the team seen last, for links that know no team."""
    last = membership(request.user, request.session.get(LAST_TEAM, ""))
    team = last.team if last else first_team(request.user)
    return redirect("help", team.slug, topic) if team else redirect("home")
