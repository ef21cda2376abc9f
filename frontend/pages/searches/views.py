"""Searches for the sustainable rate: the list, a new one, and one with its trials, its interval and its curve."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.analysis.search import TryRate
from experiments.asking.searches import live as searches
from experiments.asking.searches import reading as search_reading
from experiments.asking.searches.reading import Cost
from experiments.models import CapacitySearch, Role, SearchTrial
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS
from frontend.charts.curve import CurvePoint, curve_json
from frontend.pages.searches.forms import SearchForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.api_call import api_url, curl
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import last_parts
from frontend.shared.forms.parameters import parameter_text
from frontend.shared.live_answer import page_with_answer
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid, refuse

PAGE = 50
PARTS = ("application", "recipe", "workload", "sut")


@team_view()
def search_list(request: TeamRequest) -> HttpResponse:
    """The team's searches, newest first."""
    rows, older = searches.SEARCHES.newest(request.team, before=id_in(request.GET.get("before", "")), limit=PAGE)
    shown = [(search, search_reading.objective_text(search)) for search in rows]
    context = {"searches": shown, "older_query": f"before={older}" if older else ""}
    return render(request, "searches/list.html", context)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_search(request: TeamRequest) -> HttpResponseBase:
    """Start a search. `?from=<id>` copies one; `show` gives the equal API call instead of starting."""
    choices = TeamChoices(request.team)
    if request.method == "GET":
        return _form(request, choices, SearchForm(choices, initial=_initial(request)))
    form = SearchForm(choices, request.POST)
    if not form.is_valid():
        return _form(request, choices, form, status=422)
    settings = form.settings()
    if "show" in request.POST and settings["low_rps"] < settings["high_rps"]:
        rates = {name: settings[name] for name in ("low_rps", "high_rps", "width_ratio")}
        call = curl(api_url(request, "searches"), form.api_body())
        return _form(request, choices, form, call=call, cost=search_reading.expected_cost(form.choice(), **rates))
    try:
        search = searches.start_search(request.member, form.choice(), **settings)
    except RequestError as error:
        refuse(form, error)
        return _form(request, choices, form, status=422)
    return redirect("search", request.team.slug, search.pk)


@team_view()
def search(request: TeamRequest, search_id: int) -> HttpResponse:
    """The page, or its answer."""
    found = searches.SEARCHES.find(request.team, search_id)
    step = searches.next_step(found) if found.state == CapacitySearch.State.RUNNING else None
    context = {
        "search": found,
        "objective": search_reading.objective_text(found),
        "label": METRICS[found.objective_metric].label,
        "trials": [(trial, search_reading.latency_of(found, trial.run)) for trial in search_reading.trials_of(found)],
        "cost": search_reading.cost_of(found),
        "step": step if isinstance(step, TryRate) else None,
        "is_live": found.state == CapacitySearch.State.RUNNING,
        "service_time": search_reading.latency_basis(found) == "service_time",
    }
    return page_with_answer(request, "searches/page.html", "searches/_answer.html", context)


@team_view()
def search_chart(request: TeamRequest, search_id: int) -> JsonResponse:
    """The trials for both charts."""
    found = searches.SEARCHES.find(request.team, search_id)
    step = searches.next_step(found) if found.state == CapacitySearch.State.RUNNING else None
    low, high = (step.low_rps, step.high_rps) if isinstance(step, TryRate) else (found.low_rps, found.high_rps)
    trials = search_reading.trials_of(found)
    points = [
        CurvePoint(
            throughput_rps=trial.run.throughput_rps,
            latency_ms=latency_ms,
            offered=trial.rate_rps,
            name=f"#{trial.run.number}",
            counts=trial.result != SearchTrial.Result.INVALID,
        )
        for trial in trials
        if trial.result and (latency_ms := search_reading.latency_of(found, trial.run)) is not None
    ]
    label = METRICS[found.objective_metric].label
    return JsonResponse(
        {
            "low_rps": low,
            "high_rps": high,
            "over": found.state != CapacitySearch.State.RUNNING,
            "trials": [_trial_json(trial) for trial in trials],
            **curve_json(points, label=label, objective_ms=found.objective_ms, of="requests/s offered"),
        }
    )


@require_POST
@team_view(Role.LAUNCHER)
def cancel_search(request: TeamRequest, search_id: int) -> HttpResponse:
    """End it, and the trial that is under way."""
    found = searches.SEARCHES.find(request.team, search_id)
    with RefusalSaid(request):
        searches.SEARCHES.cancel(request.member, found)
        messages.success(request, "Cancelled. A trial that is under way stops its load and restores its hosts.")
    return redirect("search", request.team.slug, search_id)


def _trial_json(trial: SearchTrial) -> dict[str, Any]:
    return {
        "position": trial.position + 1,
        "rate_rps": trial.rate_rps,
        "phase": trial.phase,
        "result": trial.result,
        "reason": trial.reason,
        "run": trial.run.number,
    }


def _initial(request: TeamRequest) -> dict[str, Any]:
    source = id_in(request.GET.get("from", ""))
    if source is None:
        return last_parts(request)
    found = searches.SEARCHES.find(request.team, source)
    initial: dict[str, Any] = {name: getattr(found, f"{name}_id") for name in PARTS}
    initial["drivers"] = [host.pk for host in found.drivers.in_order]
    initial |= {f"p_{name}": parameter_text(value) for name, value in found.parameters.items()}
    initial |= {name: getattr(found, name) for name in ("name", "objective_metric", "objective_ms", "labels")}
    low, high = found.low_rps or found.start_low_rps, found.high_rps or found.start_high_rps
    return initial | {"low_rps": low, "high_rps": high, "width_pct": round(found.width_ratio * 100, 4)}


def _form(
    request: TeamRequest,
    choices: TeamChoices,
    form: SearchForm,
    *,
    call: str = "",
    cost: Cost | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {"form": form, "missing": choices.missing(), "call": call, "cost": cost}
    return render(request, "searches/new.html", context, status=status)
