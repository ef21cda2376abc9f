"""Bisections: the list, a new one, and one with its steps, its bounds and what is still to come."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.asking.bisections import live
from experiments.asking.bisections.functions import functions_behind
from experiments.asking.bisections.reading import remaining, steps_of
from experiments.models import Bisection, Role, RunProfile
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import label_of
from frontend.pages.bisections.forms import BisectionForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import last_parts
from frontend.shared.forms.parameters import parameter_text
from frontend.shared.live_answer import page_with_answer
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid, refuse

PAGE = 50


@team_view()
def bisection_list(request: TeamRequest) -> HttpResponse:
    """The team's bisections, newest first."""
    rows, older = live.BISECTIONS.newest(request.team, before=id_in(request.GET.get("before", "")), limit=PAGE)
    context = {"bisections": [_bounds(row) for row in rows], "older_query": f"before={older}" if older else ""}
    return render(request, "bisections/list.html", context)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_bisection(request: TeamRequest) -> HttpResponseBase:
    """Start one. `?from=<id>` copies one."""
    choices = TeamChoices(request.team)
    if request.method == "GET":
        return _form(request, choices, BisectionForm(choices, initial=_initial(request)))
    form = BisectionForm(choices, request.POST)
    if form.is_valid():
        try:
            made = live.start_bisection(request.member, form.plan())
        except RequestError as error:
            refuse(form, error)
        else:
            return redirect("bisection", request.team.slug, made.pk)
    return _form(request, choices, form, status=422)


@team_view()
def bisection(request: TeamRequest, bisection_id: int) -> HttpResponse:
    """The page, or its answer."""
    found = live.BISECTIONS.find(request.team, bisection_id)
    profiled = RunProfile.objects.filter(run__experiment__bisection_step__bisection=found)
    results = {step.index: step for step in steps_of(found)}
    context = {
        **_bounds(found),
        "label": label_of(found.metric),
        "steps": [(step, found.names[step.index]) for step in results.values()],
        "profiled": set(profiled.values_list("run__experiment", flat=True)),
        "line": [(name, results.get(index)) for index, name in enumerate(found.names)],
        "left": remaining(found),
        "behind": functions_behind(found),
        "is_live": found.state == Bisection.State.RUNNING,
    }
    return page_with_answer(request, "bisections/page.html", "bisections/_answer.html", context)


@team_view()
def bisection_chart(request: TeamRequest, bisection_id: int) -> JsonResponse:
    """What was found about each candidate that was compared, for the chart."""
    found = live.BISECTIONS.find(request.team, bisection_id)
    return JsonResponse(
        {
            "label": label_of(found.metric),
            "margin_pct": 100 * found.margin_ratio,
            "candidates": found.names,
            "low": found.low,
            "high": found.high,
            "steps": [
                {
                    "position": step.position + 1,
                    "index": step.index,
                    "result": step.result,
                    "estimate_pct": step.estimate_pct,
                    "low_pct": step.ci95_low_pct,
                    "high_pct": step.ci95_high_pct,
                }
                for step in steps_of(found)
            ],
        }
    )


@require_POST
@team_view(role=Role.LAUNCHER)
def cancel_bisection(request: TeamRequest, bisection_id: int) -> HttpResponse:
    """End it, and the experiment that is under way."""
    with RefusalSaid(request):
        live.BISECTIONS.cancel(request.member, live.BISECTIONS.find(request.team, bisection_id))
        messages.success(request, "Cancelled. A run that is under way stops its load and restores its hosts.")
    return redirect("bisection", request.team.slug, bisection_id)


def _form(request: TeamRequest, choices: TeamChoices, form: BisectionForm, status: int = 200) -> HttpResponse:
    return render(request, "bisections/new.html", {"form": form, "missing": choices.missing()}, status=status)


def _bounds(found: Bisection) -> dict[str, Any]:
    names = found.names
    return {
        "bisection": found,
        "good": names[0],
        "bad": names[-1],
        "low": names[found.low],
        "high": None if found.high is None else names[found.high],
    }


def _initial(request: TeamRequest) -> dict[str, Any]:
    source = id_in(request.GET.get("from", ""))
    if source is None:
        return last_parts(request)
    found = live.BISECTIONS.find(request.team, source)
    same = ("name", "parameter", "metric", "max_blocks", "labels")
    initial: dict[str, Any] = {name: getattr(found, name) for name in same}
    initial |= {name: getattr(found, f"{name}_id") for name in ("application", "recipe", "workload", "sut")}
    initial["drivers"] = [host.pk for host in found.drivers.in_order]
    initial |= {f"p_{name}": parameter_text(value) for name, value in found.parameters.items()}
    initial["margin_pct"] = round(100 * found.margin_ratio, 4)
    if found.parameter:
        initial["candidates"] = "\n".join(found.candidates)
    else:
        initial |= {"good_version": found.candidates[0], "bad_version": found.candidates[-1]}
    return initial
