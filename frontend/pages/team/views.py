"""Settings, Team: its name, what it asks of its members, leaving it; and the page that founds another one."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.registry.errors import Conflict, RequestError
from experiments.registry.teams.founding import change_team, found_team, may_found
from experiments.registry.teams.link_templates import set_team_links
from experiments.registry.teams.members import leave
from frontend.pages.team.forms import NewTeamForm, TeamForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import refuse


@require_http_methods(["GET", "POST"])
@team_view()
def team(request: TeamRequest) -> HttpResponseBase:
    """What the team is called and asks of its members; POST changes it."""
    kept = {name: getattr(request.team, name) for name in ("name", "requires_second_factor", "link_templates")}
    form = TeamForm(request.POST or None, initial=kept)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                set_team_links(request.member, form.cleaned_data.pop("link_templates"))
                change_team(request.member, **form.cleaned_data)
        except Conflict as error:
            form.add_error("requires_second_factor", error.message)
        else:
            messages.success(request, "Saved.")
            return redirect("team", request.team.slug)
    context = {"tab": "team", "form": form, "may_found": may_found(request.user)}
    return render(request, "team/page.html", context, status=422 if form.errors else 200)


@require_POST
@team_view()
def leave_team(request: TeamRequest) -> HttpResponseBase:
    """The member leaves by themselves."""
    try:
        leave(request.member)
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("team", request.team.slug)
    messages.success(request, f"You left {request.team.name}.")
    return redirect("home")


@login_required
@require_http_methods(["GET", "POST"])
def new_team(request: HttpRequest) -> HttpResponse:
    """A team with the user as its admin."""
    if not may_found(request.user):
        raise PermissionDenied("Only operators found teams here; ask one, or to be invited.")
    form = NewTeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            member = found_team(request.user, **form.cleaned_data)
        except RequestError as error:
            refuse(form, error)
        else:
            return redirect("overview", member.team.slug)
    return render(request, "team/new.html", {"form": form}, status=422 if form.errors else 200)
