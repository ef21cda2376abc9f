"""Notes on charts: added, changed and deleted from the page that shows the chart."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from experiments.models import Role, Run, Series
from experiments.registry.errors import RequestError
from experiments.registry.notes import chart_notes
from experiments.telling.run_list.conditions import parse_time
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid
from frontend.shared.run_story import story_of


@require_POST
@team_view(Role.LAUNCHER)
def annotate_series(request: TeamRequest, pk: int) -> HttpResponse:
    """A note on a trend: at a run's place in it, or at a time."""
    series = Series.objects.for_team(request.team).filter(pk=pk).first()
    if series is None:
        raise Http404("No such series.")

    with RefusalSaid(request):
        chart_notes.annotate(request.member, series, _on_trend(request), request.POST.get("text", ""))
        messages.success(request, "The note stands on the charts.")
    return _back(request)


@require_POST
@team_view(Role.LAUNCHER)
def annotate_run(request: TeamRequest, number: int) -> HttpResponse:
    """A note on a run's timeline, at seconds since measuring began."""
    run = Run.objects.for_team(request.team).filter(number=number).first()
    if run is None:
        raise Http404("No such run.")

    with RefusalSaid(request):
        zero_unix_s = story_of(run).measure_from_unix_s or (run.started_at or run.queued_at).timestamp()
        try:
            at = datetime.fromtimestamp(zero_unix_s + float(request.POST.get("at_s") or 0), UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise RequestError("A time on the timeline is a number of seconds.", field="at_s") from error
        chart_notes.annotate(request.member, run, at, request.POST.get("text", ""))
        messages.success(request, "The note stands on the timeline.")
    return _back(request)


@require_POST
@team_view(Role.LAUNCHER)
def change_annotation(request: TeamRequest, pk: int) -> HttpResponse:
    """Another text for a note, or with `delete` its end."""
    note = chart_notes.find_annotation(request.member, pk)
    with RefusalSaid(request):
        if "delete" in request.POST:
            chart_notes.remove(request.member, note)
            messages.success(request, "The note is deleted.")
        else:
            chart_notes.change(request.member, note, text=request.POST.get("text", ""))
            messages.success(request, "The note is changed.")
    return _back(request)


def _on_trend(request: TeamRequest) -> datetime:
    if at := request.POST.get("at"):
        return parse_time(at, "at")
    number = id_in(request.POST.get("run", "").removeprefix("#"))
    run = Run.objects.for_team(request.team).filter(number=number).first() if number and number < 2**31 else None
    if run is None:
        raise RequestError("Say at which run the note stands, by its number.", field="run")
    return chart_notes.moment_of(run)


def _back(request: TeamRequest) -> HttpResponse:
    """To the page with the chart."""
    back = request.POST.get("back", "")
    if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return redirect(back)
    return redirect("trends", request.team.slug)
