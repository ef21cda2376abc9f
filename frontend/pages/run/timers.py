"""A table of timers is added to a run."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from experiments.asking.intake.timers import import_timers
from experiments.models import Role, Run
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid


@require_POST
@team_view(Role.LAUNCHER)
def add_timers(request: TeamRequest, number: int) -> HttpResponse:
    """Store what the form holds, and say what cannot be read."""
    run = Run.objects.for_team(request.team).filter(number=number).first()
    if run is None:
        raise Http404("No such run.")
    with RefusalSaid(request):
        table = import_timers(request.member, run, name=request.POST.get("name", ""), text=request.POST.get("text", ""))
        messages.success(request, f"{len(table.rows)} timers added.")
    return redirect("run", request.team.slug, number)
