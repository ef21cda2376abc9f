"""The documentation as pages of the product."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from frontend.pages.help.contents import INDEX, help_page
from frontend.shared.access import TeamRequest, team_view


@require_safe
@team_view()
def help_topic(request: TeamRequest, topic: str = "") -> HttpResponse:
    """One page of the documentation, or its index; its links are right at its own address only."""
    if topic == INDEX:
        return redirect("help_index", request.team.slug)
    try:
        page = help_page(topic or INDEX)
    except KeyError as error:
        raise Http404("There is no such page of help.") from error
    return render(request, "help/page.html", {"page": page, "is_index": not topic})
