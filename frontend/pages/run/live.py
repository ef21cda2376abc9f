"""A run's events for its page: the stream, and the same as JSON for what cuts streams."""

from __future__ import annotations

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpResponseBase, JsonResponse

from experiments.models import Run
from experiments.registry.logs.live_feed import EventStream, read_events, stream
from frontend.shared.access import TeamRequest, async_team_view


def _after(request: TeamRequest) -> int:
    """Where to go on: what the browser saw last, else what the page was rendered with."""
    text = request.headers.get("Last-Event-ID") or request.GET.get("after", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


async def _run(request: TeamRequest, number: int) -> dict[str, Any]:
    found = await Run.objects.for_team(request.team).filter(number=number).values("pk", "last_seq", "state").afirst()
    if found is None:
        raise Http404("No such run.")
    return dict(found)


@async_team_view()
async def events(request: TeamRequest, number: int) -> HttpResponseBase:
    """The stream of one run."""
    run = await _run(request, number)
    content = stream(run["pk"], _after(request), run["last_seq"], run["state"] == Run.State.FINISHED)
    return EventStream(content)


@async_team_view()
async def events_page(request: TeamRequest, number: int) -> HttpResponseBase:
    """The same events as one JSON answer, for browsers and proxies that cut streams."""
    run = await _run(request, number)
    batch = await sync_to_async(read_events)(run["pk"], _after(request))
    return JsonResponse({"events": [json.loads(data) for _, data in batch.events], "finished": batch.finished})
