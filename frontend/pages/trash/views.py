"""Deleting: into the trash, out of it again, and what is in it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.keeping.retention.trash import (
    KEPT_DAYS,
    restore_experiment,
    restore_runs,
    trash_experiment,
    trash_of,
    trash_runs,
)
from experiments.models import Role
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid


@require_safe
@team_view()
def trash(request: TeamRequest) -> HttpResponseBase:
    """What is in the trash, until when, and how to get it back."""
    context = {"tab": "trash", "rows": trash_of(request.team), "days": KEPT_DAYS}
    return render(request, "trash/page.html", context)


@require_POST
@team_view(Role.EDITOR)
def delete_run(request: TeamRequest, number: int) -> HttpResponseBase:
    """Move a run to the trash."""
    said = f"Run #{number} is in the trash; it can be restored for {KEPT_DAYS} days."
    with RefusalSaid(request):
        trash_runs(request.member, [number])
        messages.success(request, said)
        return redirect("trash", request.team.slug)
    return redirect("run", request.team.slug, number)


@require_POST
@team_view(Role.EDITOR)
def delete_experiment(request: TeamRequest, experiment_id: int) -> HttpResponseBase:
    """Move an experiment and its runs to the trash."""
    said = f"The experiment is in the trash with its runs; it can be restored for {KEPT_DAYS} days."
    with RefusalSaid(request):
        trash_experiment(request.member, experiment_id)
        messages.success(request, said)
        return redirect("trash", request.team.slug)
    return redirect("experiment", request.team.slug, experiment_id)


@require_POST
@team_view(Role.EDITOR)
def restore(request: TeamRequest) -> HttpResponseBase:
    """Take a run or an experiment out of the trash."""
    key = id_in(request.POST.get("key", "")) or 0
    with RefusalSaid(request):
        if request.POST.get("kind") == "experiment":
            restore_experiment(request.member, key)
            messages.success(request, "The experiment is back with its runs.")
        elif key < 2**31:
            restore_runs(request.member, [key])
            messages.success(request, f"Run #{key} is back.")
    return redirect("trash", request.team.slug)
