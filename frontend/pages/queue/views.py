"""The queue: what runs, what waits and why, and when it can be expected to start."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.asking.launching.cancelling import cancel_run
from experiments.models import Host, Role, Run
from experiments.registry.errors import NotFound, RequestError
from experiments.running.queue.timetable import queue_of
from frontend.shared.access import TeamRequest, team_view

MOST_RUNNING = 50
"""Running runs on the page: what waits shall be in sight below them, and the page renews itself every few seconds."""


@require_safe
@team_view()
def queue(request: TeamRequest) -> HttpResponseBase:
    """Running and waiting runs; the page renews itself every few seconds."""
    found = queue_of(request.team, most_running=MOST_RUNNING)
    needed = {host.pk for line in found.waiting for host in line.run.hosts}
    blocked = Host.objects.for_team(request.team).filter(pk__in=needed).exclude(state=Host.State.READY).order_by("name")
    context = {"queue": found, "blocked": blocked.only("id", "name", "state", "state_reason")}
    return render(request, "queue/page.html", context)


@require_POST
@team_view(role=Role.LAUNCHER)
def queue_cancel(request: TeamRequest, number: int) -> HttpResponseBase:
    """Cancel one run: a waiting one ends at once, a running one stops and restores its host."""
    run = Run.objects.for_team(request.team).filter(number=number).first()
    if run is None:
        raise NotFound(f"There is no run #{number}.")
    try:
        cancel_run(request.member, run)
    except RequestError as error:
        messages.error(request, error.message)
    else:
        done = "is cancelled" if not run.is_live else "stops now and restores its host"
        messages.success(request, f"Run #{number} {done}.")
    return redirect("queue", request.team.slug)
