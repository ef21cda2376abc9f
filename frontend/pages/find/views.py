"""Search: one box for everything of the team that has a name or a number."""

from __future__ import annotations

import re

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from experiments.registry.errors import RequestError
from experiments.telling.find.everything import Found, look_up
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.document_kinds import KINDS


@require_safe
@team_view()
def find(request: TeamRequest) -> HttpResponse:
    """What fits, by kind. A run's number leads straight to the run."""
    text = request.GET.get("q", "").strip()
    problem = ""
    try:
        found = look_up(request.team, text)
    except RequestError as error:
        found, problem = Found(), error.message
    if found.exact is not None:
        return redirect("run", request.team.slug, found.exact.number)
    context = {
        "text": text,
        "found": found,
        "documents": [(KINDS[name], rows) for name, rows in found.documents.items() if rows],
        "problem": problem,
        "is_number": bool(re.fullmatch(r"#?[0-9]+", text)),
    }
    return render(request, "find/page.html", context, status=422 if problem else 200)
