"""Schedules: the list, a new or changed one, and one with its occasions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.asking.schedules import saving
from experiments.asking.schedules.clock import expression_of, in_words
from experiments.asking.schedules.reading import find_schedule, occasions_of, result_of, times_of, with_names
from experiments.models import Role, Run, Schedule
from experiments.registry.errors import RequestError
from experiments.running.queue.priorities import name_of
from frontend.pages.schedules.forms import ScheduleForm, days_and_time
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid, refuse

ACTIONS = {
    "pause": (saving.pause_schedule, "Paused. Nothing is launched until somebody resumes it."),
    "resume": (saving.resume_schedule, "Resumed. It runs as you from now on."),
}


@team_view()
def schedule_list(request: TeamRequest) -> HttpResponse:
    """The team's schedules by name."""
    found = with_names(Schedule.objects.for_team(request.team)).order_by("name")
    return render(request, "schedules/list.html", {"schedules": [_shown(schedule) for schedule in found]})


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_schedule(request: TeamRequest) -> HttpResponseBase:
    """A new one. `?experiment=<id>` and `?run=<number>` say what it launches."""
    if request.method == "GET":
        initial = {name: id_in(request.GET.get(name, "")) for name in ("experiment", "run")}
        return _form(request, ScheduleForm(request.team, initial=initial))
    form = ScheduleForm(request.team, request.POST)
    if form.is_valid():
        try:
            made = saving.create_schedule(request.member, form.plan())
        except RequestError as error:
            refuse(form, error)
        else:
            return redirect("schedule", request.team.slug, made.pk)
    return _form(request, form, status=422)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def edit_schedule(request: TeamRequest, schedule_id: int) -> HttpResponseBase:
    """Other values; it runs as whoever saves them."""
    found = find_schedule(request.team, schedule_id)
    if request.method == "GET":
        return _form(request, ScheduleForm(request.team, initial=_initial(found)), schedule=found)
    form = ScheduleForm(request.team, request.POST)
    if form.is_valid():
        try:
            saving.change_schedule(request.member, found, form.plan())
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "Saved. It runs as you from now on.")
            return redirect("schedule", request.team.slug, schedule_id)
    return _form(request, form, schedule=found, status=422)


@team_view()
def schedule(request: TeamRequest, schedule_id: int) -> HttpResponse:
    """One schedule: when it is next due, and what became of the times before."""
    found = find_schedule(request.team, schedule_id)
    occasions = [(occasion, result_of(occasion)) for occasion in occasions_of(found)]
    return render(request, "schedules/page.html", {**_shown(found), "occasions": occasions})


@require_POST
@team_view(role=Role.LAUNCHER)
def schedule_action(request: TeamRequest, schedule_id: int) -> HttpResponse:
    """`do`: pause, resume or delete."""
    found = find_schedule(request.team, schedule_id)
    wanted = request.POST.get("do", "")
    with RefusalSaid(request):
        if wanted == "delete":
            saving.delete_schedule(request.member, found)
            messages.success(request, f"The schedule {found.name} is deleted; what it launched stays.")
            return redirect("schedules", request.team.slug)
        if wanted in ACTIONS:
            act, said = ACTIONS[wanted]
            act(request.member, found)
            messages.success(request, said)
    return redirect("schedule", request.team.slug, schedule_id)


def _shown(found: Schedule) -> dict[str, Any]:
    newest = found.newest  # type: ignore[attr-defined]  # prefetched by with_names
    return {
        "schedule": found,
        "words": in_words(found.crontab),
        "cron": expression_of(found.crontab),
        "times": [f"{at.astimezone(found.crontab.timezone):%a %Y-%m-%d %H:%M}" for at in times_of(found)],
        "last": newest[0] if newest else None,
        "result": result_of(newest[0]) if newest else None,
    }


def _initial(found: Schedule) -> dict[str, Any]:
    names = ("name", "newest_versions", "skips_unchanged", "labels")
    run: Run | None = found.run
    return {name: getattr(found, name) for name in names} | {
        "experiment": found.experiment_id,
        "run": run.number if run else None,
        **days_and_time(expression_of(found.crontab)),
        "time_zone": str(found.crontab.timezone),
        "priority": name_of(found.priority),
    }


def _form(
    request: TeamRequest, form: ScheduleForm, *, schedule: Schedule | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "schedules/edit.html", {"form": form, "schedule": schedule}, status=status)
