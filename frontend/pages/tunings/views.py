"""Tuning searches: the list, a new one, and one with its trials, its answer and what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.asking.library.catalogue import known_space
from experiments.asking.tunings import live, steering
from experiments.asking.tunings.more_budget import More, more_for, more_to_look_for_others
from experiments.asking.tunings.plan import MOST_RUNS
from experiments.asking.tunings.reading import (
    cost_of,
    effects_in,
    limits_text,
    reduction_runs,
    shown,
    trials_of,
)
from experiments.asking.tunings.recipes import is_saved, left_out, save_recipe
from experiments.asking.tunings.trials import space_to_search
from experiments.asking.tunings.wording import claim_beside, config_text, improvement_pct, smallest_evidence
from experiments.asking.tunings.wording import shown as value_text
from experiments.models import Member, Recipe, Role, Tuning, TuningTrial
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import label_of
from frontend.charts.coordinates import coordinates_json
from frontend.charts.effects import pictures, scale_text
from frontend.pages.tunings.forms import SAME, TuningForm, initial_of
from frontend.pages.tunings.from_library import library_initial
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import last_parts
from frontend.shared.forms.parameters import parameter_text
from frontend.shared.live_answer import page_with_answer
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid, refuse

PAGE = 50


@team_view()
def tuning_list(request: TeamRequest) -> HttpResponse:
    """The team's tuning searches, newest first."""
    rows, older = live.TUNINGS.newest(request.team, before=id_in(request.GET.get("before", "")), limit=PAGE)
    context = {
        "tunings": [(row, _gain(row)) for row in rows],
        "older_query": f"before={older}" if older else "",
    }
    return render(request, "tunings/list.html", context)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_tuning(request: TeamRequest) -> HttpResponseBase:
    """Start one. `?from=<id>` copies one, `?template=<name>` with hosts begins with one of the library."""
    choices = TeamChoices(request.team)
    if request.method == "GET":
        return _form(request, choices, TuningForm(choices, initial=_initial(request)))
    form = TuningForm(choices, request.POST)
    if form.is_valid():
        try:
            made = live.start_tuning(request.member, form.plan())
        except RequestError as error:
            _refuse(form, error)
        else:
            return redirect("tuning", request.team.slug, made.pk)
    return _form(request, choices, form, status=422)


@require_safe
@team_view(role=Role.LAUNCHER)
def tuning_parameters(request: TeamRequest) -> HttpResponseBase:
    """The fields that follow from the recipe and the application that were just chosen, with the library's bounds."""
    chosen = {name: request.GET.get(name, "") for name in ("application", "recipe")}
    choices = TeamChoices(request.team)
    recipe = Recipe.objects.for_team(request.team).filter(pk=id_in(chosen["recipe"])).first()
    known = known_space(recipe.name) if recipe else None
    form = TuningForm(choices, initial=chosen | (initial_of(known) if known else {}))
    return render(request, "tunings/_parameters.html", {"form": form})


@team_view()
def tuning(request: TeamRequest, tuning_id: int) -> HttpResponse:
    """The page, or its answer."""
    found = live.TUNINGS.find(request.team, tuning_id)
    trials = trials_of(found)
    rows = shown(found, trials)
    is_over = found.state in steering.OPEN_AGAIN and found.outcome != Tuning.Outcome.BETTER
    over = [one for one in trials if one.result]
    to_search = more_to_look_for_others(found, over) if is_over else None
    more = more_for(found, over, found.more_runs) if found.more_runs else to_search or More(20, 0.0)
    starts = found.space.get("starts", ())
    context = {
        "tuning": found,
        "label": label_of(found.metric),
        "limits": limits_text(found),
        "cost": cost_of(found, trials),
        "trials": rows[::-1],
        "newest": rows[-1] if rows and not rows[-1].trial.result else None,
        "best": _best(found),
        "servers": _servers(found),
        "gain": _gain(found),
        "claim": claim_beside(found),
        "note": _note(found),
        "answer": _answer_rows(found),
        "smallest_evidence": smallest_evidence(found),
        "is_saved": is_saved(found),
        "left_out": left_out(found) if found.winner and found.state != Tuning.State.RUNNING else [],
        "has_limits": any(one.limited for one in rows),
        "reduction_runs": reduction_runs(found) if found.winner and not found.smallest else 0,
        "is_live": found.state == Tuning.State.RUNNING,
        "may_add": found.state == Tuning.State.RUNNING or is_over,
        "most_more_runs": MOST_RUNS - found.budget_runs,
        "more_runs": min(more.runs, MOST_RUNS - found.budget_runs),
        "more_hours": more.hours,
        "to_search": to_search,
        "most_runs": MOST_RUNS,
        "may_leave_out": found.state == Tuning.State.RUNNING and not found.outcome,
        "space": found.space["parameters"],
        "starts": [(config_text({**found.default, **one["config"]}, found.default), one["why"]) for one in starts],
    }
    return page_with_answer(request, "tunings/page.html", "tunings/_answer.html", context)


@team_view()
def tuning_chart(request: TeamRequest, tuning_id: int) -> JsonResponse:
    """Every trial in order, for the chart, and as lines over the parameters."""
    found = live.TUNINGS.find(request.team, tuning_id)
    rows = shown(found, trials_of(found))
    return JsonResponse(
        {
            "label": label_of(found.metric),
            "trials": [
                {
                    "position": one.trial.position + 1,
                    "purpose": one.trial.purpose,
                    "is_default": one.is_default,
                    "config": one.config,
                    "figure": one.trial.figure,
                    "run": one.trial.run.number if one.trial.run else None,
                }
                for one in rows
            ],
            "coordinates": coordinates_json(found, rows),
        }
    )


@team_view()
def tuning_effects(request: TeamRequest, tuning_id: int) -> HttpResponse:
    """What the model believes of each parameter alone; nothing for `?seen=` as many trials as are over now."""
    found = live.TUNINGS.find(request.team, tuning_id)
    seen = found.trials.exclude(result=TuningTrial.Result.NONE).count()
    if request.GET.get("seen") == str(seen):
        return HttpResponse(status=204)
    effects = effects_in(found)
    context: dict[str, Any] = {"tuning": found, "seen": seen}
    if effects:
        context |= {"effects": pictures(space_to_search(found), effects), "scale": scale_text(effects)}
    return render(request, "tunings/_effects.html", context)


@require_POST
@team_view(role=Role.LAUNCHER)
def tuning_action(request: TeamRequest, tuning_id: int, action: str) -> HttpResponse:
    """Pause, go on, look for the smallest recipe, or end it."""
    actions: dict[str, tuple[Callable[[Member, Tuning], None], str]] = {
        "pause": (steering.pause, "Paused. The run that is under way goes on to its end."),
        "resume": (steering.resume, "It goes on."),
        "smallest": (steering.find_smallest, "Each parameter of the answer now goes back to its default alone."),
        "cancel": (live.TUNINGS.cancel, "Cancelled. A run that is under way stops its load and restores its hosts."),
    }
    with RefusalSaid(request):
        found = live.TUNINGS.find(request.team, tuning_id)
        if action not in actions:
            raise RequestError("There is no such action.")
        act, said = actions[action]
        act(request.member, found)
        messages.success(request, said)
    return redirect("tuning", request.team.slug, tuning_id)


@require_POST
@team_view(role=Role.LAUNCHER)
def tuning_budget(request: TeamRequest, tuning_id: int) -> HttpResponse:
    """More runs, or hours."""
    with RefusalSaid(request):
        found = live.TUNINGS.find(request.team, tuning_id)
        runs, hours = (_number(request.POST.get(name, ""), name) for name in ("runs", "hours"))
        steering.add_budget(request.member, found, runs=int(runs), hours=hours)
        messages.success(request, "The budget is larger now.")
    return redirect("tuning", request.team.slug, tuning_id)


@require_POST
@team_view(role=Role.LAUNCHER)
def tuning_region(request: TeamRequest, tuning_id: int) -> HttpResponse:
    """A region in which nothing more is tried."""
    with RefusalSaid(request):
        found = live.TUNINGS.find(request.team, tuning_id)
        steering.leave_out(request.member, found, request.POST.get("mixture", ""))
        messages.success(request, "Nothing more is tried there. A run that is under way goes on to its end.")
    return redirect("tuning", request.team.slug, tuning_id)


@require_POST
@team_view(role=Role.EDITOR)
def tuning_recipe(request: TeamRequest, tuning_id: int) -> HttpResponse:
    """The answer as a version of the recipe."""
    with RefusalSaid(request):
        found, without = live.TUNINGS.find(request.team, tuning_id), id_in(request.POST.get("without_version", ""))
        made = save_recipe(request.member, found, without_version=without)
        messages.success(request, f"Saved as {made}.")
        return redirect("recipe", request.team.slug, made.pk)
    return redirect("tuning", request.team.slug, tuning_id)


def _number(text: str, field: str) -> float:
    if not text.strip():
        return 0.0
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"{text[:40]!r} is no number.", field=field) from None
    if not 0 <= value < 10_000:
        raise RequestError("Give a number from 0 to 10,000.", field=field)
    return value


def _form(request: TeamRequest, choices: TeamChoices, form: TuningForm, status: int = 200) -> HttpResponse:
    return render(request, "tunings/new.html", {"form": form, "missing": choices.missing()}, status=status)


def _refuse(form: TuningForm, error: RequestError) -> None:
    """At the parameter that it is about, when it is about one."""
    name = (error.field or "").removeprefix("space.").partition(".")[0]
    field = f"s_{name}" if f"s_{name}" in form.fields else name if name in ("forbidden", "starts") else error.field
    refuse(form, RequestError(error.message, field=field))


def _servers(found: Tuning) -> list[str]:
    """Every server in words, with what keeps one out of service."""
    others = list(found.further_suts.select_related("host"))
    said = []
    for host, confirms in [(found.sut, False), *((row.host, row.confirms) for row in others)]:
        parts = [host.name, "(confirms)" if confirms else "", "" if host.state == "ready" else f"({host.state})"]
        said.append(" ".join(filter(None, parts)))
    return said


def _gain(found: Tuning) -> dict[str, float] | None:
    if found.gain_ratio is None or found.low_ratio is None or found.high_ratio is None:
        return None
    ratios = {"gain": found.gain_ratio, "low": found.low_ratio, "high": found.high_ratio}
    return {name: improvement_pct(found, ratio) for name, ratio in ratios.items()}


def _note(found: Tuning) -> dict[str, str]:
    """How the search's own sentence looks: a stop is no success, whatever was found before."""
    if found.state == Tuning.State.STOPPED:
        return {"kind": "warn", "icon": "warning"}
    is_answer = found.state == Tuning.State.FINISHED and found.winner is not None
    return {"kind": "good", "icon": "check"} if is_answer else {"kind": "info", "icon": "info"}


def _best(found: Tuning) -> dict[str, Any] | None:
    """What looks best so far, and by how many per cent the metric gets better."""
    if not found.best:
        return None
    best = found.best
    return {
        "config": config_text(best["config"], found.default),
        **{name: improvement_pct(found, best[name]) for name in ("gain", "low", "high")},
        "within_pct": round(100 * best["within"]),
        "runs": best["runs"],
    }


def _answer_rows(found: Tuning) -> list[dict[str, str]]:
    """Each parameter at its default, in the winner and in the smallest recipe."""
    if found.winner is None:
        return []
    smallest = found.smallest["config"] if found.smallest else {}
    return [
        {
            "name": one["name"],
            "default": value_text(found.default[one["name"]]),
            "winner": value_text(found.winner[one["name"]]),
            "smallest": value_text(smallest[one["name"]]) if smallest else "",
        }
        for one in found.space["parameters"]
    ]


def _initial(request: TeamRequest) -> dict[str, Any]:
    if name := request.GET.get("template", ""):
        return library_initial(request, name)
    source = id_in(request.GET.get("from", ""))
    if source is None:
        # Without its parameters: what is compared with are the recipe's defaults, not what the last run tried.
        return {name: value for name, value in last_parts(request).items() if not name.startswith("p_")}
    found = live.TUNINGS.find(request.team, source)
    initial: dict[str, Any] = {name: getattr(found, name) for name in SAME}
    initial |= {name: getattr(found, f"{name}_id") for name in ("application", "recipe", "workload", "sut")}
    initial["drivers"] = [host.pk for host in found.drivers.in_order]
    initial |= {f"m_{role}": pk for role, pk in found.drivers.member_ids.items()}
    others = list(found.further_suts.all())
    initial["further_suts"] = [row.host_id for row in others if not row.confirms]
    initial["confirm_sut"] = next((row.host_id for row in others if row.confirms), None)
    initial |= {f"p_{name}": parameter_text(value) for name, value in found.parameters.items()}
    initial["margin_pct"] = round(100 * found.margin_ratio, 4)
    for number, limit in enumerate(found.limits, 1):
        side = "at_most" if limit["at_least"] is None else "at_least"
        initial |= {
            f"limit{number}_metric": limit["metric"], f"limit{number}_side": side, f"limit{number}_value": limit[side],
        }  # fmt: skip
    return initial | initial_of(found.space)
