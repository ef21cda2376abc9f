"""What people write on a run or an experiment: notes, tags, and whether the run is put away."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from experiments.asking.launching.bulk import archive_runs, unarchive_runs
from experiments.models import Experiment
from experiments.registry.notes.notes import set_tags, write_notes
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_run
from frontend.shared.refusals import RefusalSaid


@require_POST
@team_view()
def run_notes(request: TeamRequest, number: int) -> HttpResponse:
    """Notes and tags of a run."""
    found = find_run(request, number)
    with RefusalSaid(request), transaction.atomic():
        write_notes(request.member, found, request.POST.get("notes", ""))
        set_tags(request.member, found, request.POST.get("tags", "").replace(",", " ").split())
        messages.success(request, "Notes and tags saved.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view()
def run_archive(request: TeamRequest, number: int) -> HttpResponse:
    """Put a run into the archive, or take it out."""
    found = find_run(request, number)
    with RefusalSaid(request):
        (unarchive_runs if found.archived else archive_runs)(request.member, [number])
        said = "is back in lists and histories" if found.archived else "is archived: lists and histories leave it out"
        messages.success(request, f"Run #{number} {said}.")
    return redirect("run", request.team.slug, number)


@require_POST
@team_view()
def experiment_notes(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """Notes of an experiment."""
    found = Experiment.objects.for_team(request.team).filter(pk=experiment_id).first()
    if found is None:
        raise Http404("No such experiment.")
    with RefusalSaid(request):
        write_notes(request.member, found, request.POST.get("notes", ""))
        messages.success(request, "Notes saved.")
    return redirect("experiment", request.team.slug, experiment_id)
