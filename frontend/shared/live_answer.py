"""Pages whose answer grows while what they show is under way: a search, a bisection, a tuning search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from frontend.shared.access import TeamRequest


def page_with_answer(request: TeamRequest, page: str, answer: str, context: Mapping[str, Any]) -> HttpResponse:
    """The page; for `?part=answer`, as a live one asks again, its answer alone, which makes its charts read anew.

    What is over (`is_live` of the context) is no answer any more: the whole page is loaded, with other buttons.
    """
    if request.GET.get("part") != "answer":
        return render(request, page, dict(context))
    if not context["is_live"]:
        return page_anew()
    response = render(request, answer, dict(context))
    response.headers["HX-Trigger"] = "charts-changed"
    return response


def page_anew() -> HttpResponse:
    """Tells a page that asked for a part of itself to load as a whole."""
    return HttpResponse(headers={"HX-Refresh": "true"})
