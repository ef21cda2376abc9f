"""New run: the form, beside it what is known before anything is touched, a dry run, and the equal API call."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.asking.launching import dryrun
from experiments.asking.launching.launch import launch_run
from experiments.asking.launching.own_cpus import bound
from experiments.models import DryRun, Role, Run
from experiments.registry.errors import NotFound, RequestError
from frontend.pages.new_run.forms import RunForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.api_call import api_url, curl, urgency_parts, versioned
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import last_parts, parts_of
from frontend.shared.forms.parts import PartsForm
from frontend.shared.preflight import preview_of, proposed
from frontend.shared.query import id_in
from frontend.shared.refusals import refuse


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_run(request: TeamRequest) -> HttpResponseBase:
    """Launch one run. `?from=<number>` copies a run; `?recipe=<id>` and the like choose parts."""
    choices = TeamChoices(request.team)
    if request.method == "GET":
        return _page(request, choices, RunForm(choices, initial=_initial(request), auto_id="id_%s"))
    form = RunForm(choices, request.POST)
    if "cpu_sets" in request.POST:
        return _with_cpu_sets(request, choices, form)
    if form.is_valid():
        try:
            run = launch_run(
                request.member,
                form.choice(),
                labels=form.cleaned_data["labels"],
                tags=form.cleaned_data["tags"],
                notes=form.cleaned_data["notes"],
                priority=form.cleaned_data["priority"],
                retries=form.cleaned_data["retries"],
            )
        except RequestError as error:
            refuse(form, error)
        else:
            return redirect("run", request.team.slug, run.number)
    return _page(request, choices, form, status=422)


def _with_cpu_sets(request: TeamRequest, choices: TeamChoices, form: RunForm) -> HttpResponse:
    """The form with versions of application and workload that have the proposed CPU sets."""
    typed: dict[str, Any] = request.POST.dict() | {
        name: request.POST.getlist(name) for name in ("drivers", "profilers")
    }
    if form.is_valid() and (sets := proposed([form.choice()])) is not None:
        try:
            application, workload = bound(request.member, form.choice(), sets)
        except RequestError as error:
            refuse(form, error)
            return _page(request, choices, form, status=422)
        typed |= {"application": str(application.pk), "workload": str(workload.pk)}
    return _page(request, choices, RunForm(choices, initial=typed, auto_id="id_%s"))


@require_safe
@team_view(role=Role.LAUNCHER)
def run_parameters(request: TeamRequest) -> HttpResponseBase:
    """The fields that follow from the recipe and the application that were just chosen, for one run or for one variant
    (`prefix`)."""
    prefix = request.GET.get("prefix", "")
    if prefix and not (prefix.isalnum() and len(prefix) < 10):
        raise BadRequest("prefix")
    chosen = {name: request.GET.get(f"{prefix}-{name}" if prefix else name, "") for name in ("application", "recipe")}
    form = PartsForm(TeamChoices(request.team), initial=chosen, prefix=prefix or None)
    return render(request, "launching/parameters.html", {"form": form})


@require_POST
@team_view(role=Role.LAUNCHER)
def run_preview(request: TeamRequest) -> HttpResponseBase:
    """Preflight, plan, queue place and the API call of what the form holds; never an error page."""
    form = RunForm(TeamChoices(request.team), request.POST)
    if not form.is_valid():
        missing = [str(form[name].label) for name in form.errors if name in form.fields]
        return render(request, "launching/beside.html", {"missing": missing})
    context = preview_of(request, form.choice()) | {"curl": _curl(request, form), "cpu_sets": proposed([form.choice()])}
    return render(request, "launching/beside.html", context)


@require_POST
@team_view(role=Role.LAUNCHER)
def run_dry(request: TeamRequest) -> HttpResponseBase:
    """Start a dry run of what the form holds; the fragment asks for its result until it is there."""
    form = RunForm(TeamChoices(request.team), request.POST)
    if not form.is_valid():
        return render(request, "new_run/_dry_run.html", {"problem": "Fill in the form first."})
    try:
        found = dryrun.request(request.member, form.choice())
    except RequestError as error:
        return render(request, "new_run/_dry_run.html", {"problem": error.message})
    return render(request, "new_run/_dry_run.html", {"dry_run": found})


@require_safe
@team_view(role=Role.LAUNCHER)
def dry_run_result(request: TeamRequest, pk: int) -> HttpResponseBase:
    """A dry run's plan with the real commands, or why there is none."""
    found = DryRun.objects.for_team(request.team).filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such dry run.")
    return render(request, "new_run/_dry_run.html", {"dry_run": found})


def _curl(request: TeamRequest, form: RunForm) -> str:
    body = {**form.api_parts(), "workload": versioned(form.cleaned_data["workload"])}
    if form.cleaned_data["labels"]:
        body["labels"] = form.cleaned_data["labels"]
    if form.cleaned_data["tags"]:
        body["tags"] = form.cleaned_data["tags"]
    if form.cleaned_data["profilers"]:
        body["profilers"] = form.cleaned_data["profilers"]
    body |= urgency_parts(form.cleaned_data, retries=0)
    return curl(api_url(request, "runs"), body)


def _initial(request: TeamRequest) -> dict[str, Any]:
    """The parts of the run to copy; without one, those of the member's last run; then what the URL names."""
    source = request.GET.get("from", "")
    runs = Run.objects.for_team(request.team).filter(origin=Run.Origin.EXECUTED)
    if source:
        run = runs.filter(number=id_in(source)).first()
        if run is None:
            raise NotFound(f"There is no run #{source} to copy.")
        profilers = (run.spec or {}).get("profilers", [])
        initial = parts_of(run) | {"labels": run.labels, "tags": ", ".join(run.tags), "profilers": profilers}
    else:
        initial = last_parts(request)
    if drivers := [pk for pk in request.GET.getlist("drivers") if id_in(pk) is not None]:
        initial["drivers"] = drivers
    for name in ("application", "recipe", "workload", "sut"):
        if id_in(request.GET.get(name, "")) is not None:
            initial[name] = request.GET[name]
            if name == "recipe":
                initial = {key: value for key, value in initial.items() if not key.startswith("p_")}
    return initial


def _page(request: TeamRequest, choices: TeamChoices, form: RunForm, status: int = 200) -> HttpResponse:
    return render(request, "new_run/page.html", {"form": form, "missing": choices.missing()}, status=status)
