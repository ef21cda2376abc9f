"""The documentation as pages of the product."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from experiments.telling.find.documentation import INDEX, search
from frontend.pages.help.contents import help_page
from frontend.shared.access import TeamRequest, team_view


@require_safe
@team_view()
def help_topic(request: TeamRequest, topic: str = "") -> HttpResponse:
    """One page of the documentation, or its index; its links are right at its own address only.

    `?q=` on the index lists the sections with these words.
    """
    if topic == INDEX:
        return redirect("help_index", request.team.slug)
    try:
        page = help_page(topic or INDEX)
    except KeyError as error:
        raise Http404("There is no such page of help.") from error
    asked = request.GET.get("q", "").replace("\0", "").strip()[:200] if not topic else ""
    context = {"page": page, "is_index": not topic, "asked": asked, "hits": search(asked)}
    return render(request, "help/page.html", context)
