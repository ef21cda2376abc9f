"""Pinned baselines: name a run to compare with, see them all, take the name off."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.registry.runs.baselines import baselines_of, pin, unpin
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_run
from frontend.shared.refusals import RefusalSaid


@require_safe
@team_view()
def baseline_list(request: TeamRequest) -> HttpResponse:
    """The team's pinned baselines."""
    return render(request, "baselines/list.html", {"baselines": baselines_of(request.team)})


@require_POST
@team_view()
def pin_baseline(request: TeamRequest, number: int) -> HttpResponse:
    """Give this run a name to compare with."""
    found = find_run(request, number)
    with RefusalSaid(request):
        pinned = pin(request.member, found, request.POST.get("name", ""), for_series="for_series" in request.POST)
        every = "; every run of its series is held against it" if pinned.fingerprint else ""
        messages.success(request, f"Run #{number} is the baseline “{pinned.name}”{every}.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view()
def unpin_baseline(request: TeamRequest, baseline_id: int) -> HttpResponse:
    """Take the name off; the run stays."""
    found = baselines_of(request.team).filter(pk=baseline_id).first()
    if found is None:
        raise Http404("No such baseline.")
    unpin(request.member, found)
    messages.success(request, f"Run #{found.run.number} is no longer the baseline “{found.name}”.")
    return redirect("baselines", request.team.slug)
