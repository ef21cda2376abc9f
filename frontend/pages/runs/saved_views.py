"""Saved views of the list of runs."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.models import SavedView
from experiments.registry.errors import RequestError
from experiments.telling.run_list.saved_views import (
    change_view,
    delete_view,
    find_view,
    open_with,
    save_view,
    view_query,
)
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid


@require_POST
@team_view()
def new_view(request: TeamRequest) -> HttpResponse:
    """Save the view that the page shows under a name."""
    query = request.POST.get("query", "")
    with RefusalSaid(request):
        view = save_view(request.member, request.POST.get("name", ""), query, shared="shared" in request.POST)
        if "default" in request.POST:
            open_with(request.member, view)
        messages.success(request, f"View “{view.name}” saved{', for the whole team' if view.shared else ''}.")
        return _to(request, view.query, view)
    return _to(request, query)


@require_POST
@team_view()
def change(request: TeamRequest, view_id: int) -> HttpResponse:
    """Rename, save, share, delete, or open the list with it; `action` says which."""
    view = find_view(request.member, view_id)
    query = request.POST.get("query", "")
    with RefusalSaid(request):
        messages.success(request, _do(request, view, request.POST.get("action", ""), query))
    return _to(request, query, view if view.pk else None)


def _do(request: TeamRequest, view: SavedView, action: str, query: str) -> str:
    """Change it; returns what was done in a sentence."""
    match action:
        case "save":
            change_view(request.member, view, query=query)
            return f"View “{view.name}” now is what you see."
        case "rename":
            change_view(request.member, view, name=request.POST.get("name", ""), shared="shared" in request.POST)
            return f"View “{view.name}” saved{', for the whole team' if view.shared else ', for you alone'}."
        case "delete":
            delete_view(request.member, view)
            return f"View “{view.name}” deleted; its runs stay."
        case "default":
            open_with(request.member, view)
            return f"Runs opens with “{view.name}” for you from now on."
        case "no_default":
            open_with(request.member, None)
            return "Runs opens with every run for you from now on."
    raise RequestError("A view can be saved, renamed, deleted, or made the default.", field="action")


def _to(request: TeamRequest, query: str, view: SavedView | None = None) -> HttpResponse:
    """Back to the list as it was; a filter that the list refuses is left out."""
    try:
        kept = view_query(query)
    except RequestError:
        kept = ""
    word = str(view.pk) if view else "all"
    return redirect(f"{reverse('runs', args=[request.team.slug])}?{kept}{'&' if kept else ''}view={word}")
