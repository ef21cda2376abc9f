"""The operator's page: is everything there that makes runs start, and what is it busy with."""

from __future__ import annotations

import django
from django.http import Http404, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.keeping.backups.daily import daily_backups
from experiments.keeping.operating import operations
from experiments.keeping.operating.broker import broker_name
from frontend.shared.access import TeamRequest, team_view


@require_safe
@team_view()
def operator(request: TeamRequest) -> HttpResponseBase:
    """The whole installation, across teams: for its staff only; for everybody else there is no such page."""
    if not request.user.is_staff:
        raise Http404("No such page.")
    now = operations.look()
    queues = [
        {
            "state": state,
            "messages": now.broker.messages.get(state.name),
            "delay_ms": None if state.delay_s is None else state.delay_s * 1000,
        }
        for state in now.queues
    ]
    context = {
        "operations": now,
        "troubles": operations.troubles(now.queues, now.broker, now.wrong_clocks, now.sites, now.replica),
        "queues": queues,
        "waiting": sum(now.queued.values()),
        "running": sum(state.runs for state in now.live),
        "slots": sum(site.slots for site in now.sites),
        "broker": broker_name(),
        "backups": daily_backups(),
        "django_version": django.get_version(),
    }
    return render(request, "operator/page.html", context)
