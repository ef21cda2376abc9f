"""The flame graph of a run's profile, and what requests cost in each function of one side against the other."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from agents.profiles import PROFILE_FORMATS
from experiments.judging.comparing.functions import (
    ComparedFunctions,
    compared_functions,
    functions_of_variants,
    runs_listed,
)
from experiments.models import RunProfile
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.runs.run_profiles import folded, profile_named
from frontend.charts.flames import compared_flame, run_flame
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_experiment, find_run
from frontend.shared.query import id_in

OF_CPU, OF_OTHERS = "Where the CPU time went", "Where the samples were taken"
WHAT_IS_SHOWN = {
    "wall": "Where threads were, at work or waiting",
    "alloc": "Where memory was allocated",
    "lock": "Where threads waited for locks",
}
"""By what was sampled: headings of the flame graph."""


@require_safe
@team_view()
def run_profile(request: TeamRequest, number: int, profile: str) -> HttpResponseBase:
    """The flame graph of one profile; the others of the run beside it."""
    run = find_run(request, number)
    stored = _stored(request, number, profile)
    context = {
        "run": run,
        "profile": stored,
        "others": run.profiles.defer("folded").order_by("name"),
        "original": run.artifacts.defer("content").filter(name=stored.file).first(),
        "forms": [form for form in PROFILE_FORMATS.values() if form.write],
        "tree_url": reverse("run_profile_tree", args=[request.team.slug, number, stored.name]),
        "shown": WHAT_IS_SHOWN.get(stored.event.lower(), OF_CPU if stored.counts_cpu else OF_OTHERS),
    }
    return render(request, "profiles/run.html", context)


@require_safe
@team_view()
def run_profile_tree(request: TeamRequest, number: int, profile: str) -> HttpResponseBase:
    """The calls of the profile, for the flame graph."""
    return _bytes(run_flame(_stored(request, number, profile)))


@require_safe
@team_view()
def run_profile_file(request: TeamRequest, number: int, profile: str) -> HttpResponseBase:
    """The profile in the form `?form=`, for another viewer."""
    stored = _stored(request, number, profile)
    form = PROFILE_FORMATS.get(request.GET.get("form", "collapsed"))
    if form is None or form.write is None:
        raise Http404("No such form.")
    response = HttpResponse(form.write(folded(stored)), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="run-{number}-{stored.name}{form.suffix}"'
    return response


@require_safe
@team_view()
def functions(request: TeamRequest) -> HttpResponseBase:
    """Functions of `?experiment=3&candidate=b`, or of the runs `?before=1,2&after=3,4`, one side against the other."""
    try:
        found, others = _compared(request)
    except RequestError as error:
        if not request.GET:
            return render(request, "profiles/choose.html")
        status = 404 if isinstance(error, NotFound) else 422
        return render(request, "profiles/choose.html", {"error": error}, status=status)
    experiment = id_in(request.GET.get("experiment", ""))
    context = {
        "found": found,
        "others": others,
        "experiment_id": experiment,
        "tree_url": f"{reverse('functions_tree', args=[request.team.slug])}?{request.GET.urlencode()}",
    }
    return render(request, "profiles/functions.html", context)


@require_safe
@team_view()
def functions_tree(request: TeamRequest) -> HttpResponseBase:
    """The calls of both sides, for the differential flame graph."""
    try:
        found, _ = _compared(request)
    except RequestError as error:
        return JsonResponse({"detail": error.message}, status=404 if isinstance(error, NotFound) else 422)
    return _bytes(compared_flame(found))


def _bytes(content: bytes) -> HttpResponse:
    return HttpResponse(content, content_type="application/octet-stream")


def _compared(request: TeamRequest) -> tuple[ComparedFunctions, list[str]]:
    """What is asked for, and the other candidates of the experiment. RequestError."""
    role = request.GET.get("role", "")[:12].replace("\0", "")
    if "experiment" in request.GET:
        experiment = find_experiment(request, id_in(request.GET["experiment"]) or 0)
        every = functions_of_variants(experiment, role=role)
        asked = request.GET.get("candidate", "")
        found = next((one for one in every if one.candidate.name == asked or not asked), None)
        if found is None:
            raise NotFound("No run of this candidate, or of the baseline, has a profile.")
        return found, [one.candidate.name for one in every if one is not found]
    names = ("before", "after")
    sides = [runs_listed(request.team, request.GET.get(name, ""), field=name) for name in names]
    compared = compared_functions(names, sides, role=role)
    if compared is None:
        raise NotFound("None of these runs has a profile.")
    return compared, []


def _stored(request: TeamRequest, number: int, profile: str) -> RunProfile:
    try:
        return profile_named(find_run(request, number), profile.replace("\0", ""))
    except NotFound as error:
        raise Http404(error.message) from error
