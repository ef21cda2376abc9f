"""New experiment: the question, its variants as rows, beside them what is known before anything is touched."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.asking.launching.choices import choice_with
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.forecast import Arm, forecast
from experiments.asking.launching.launch import EXPERIMENT_RETRIES, launch_experiment
from experiments.asking.launching.own_cpus import bound
from experiments.models import Experiment, Role, Variant
from experiments.registry.documents.own_load import OWN_LOAD
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.experiments.rules import Rules
from experiments.running.queue.priorities import check_priority
from frontend.pages.new_experiment.forms import ExperimentForm, VariantForm
from frontend.pages.new_experiment.from_run import run_rows
from frontend.pages.new_experiment.from_template import template_rows
from frontend.pages.new_experiment.rows import Rows, bound_rows, changed_rows, sweepable, swept_rows
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.api_call import api_url, curl, urgency_parts, versioned
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.last_parts import last_parts
from frontend.shared.forms.parameters import parameter_text
from frontend.shared.lookups import find_run
from frontend.shared.preflight import Check, preview_of, proposed, worst_first
from frontend.shared.query import id_in
from frontend.shared.refusals import refuse

PART_NAMES = ("application", "recipe", "sut")
RULE_NAMES = ("stop_rule", "max_blocks", "max_hours", "aa_first", "canaries_first", "gate_metrics", "profilers")


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def new_experiment(request: TeamRequest) -> HttpResponseBase:
    """Make an experiment and launch it, or keep it as a draft.

    `?from=<id>` copies one, `?run=<number>` begins with a run, `?template=<name>` fills in an installed one of the
    library.

    `add`, `copy`, `remove`, `add_column`, `refresh` and `sweep_rows` change the rows and keep all that was typed.
    """
    choices = TeamChoices(request.team)
    if request.method == "GET":
        form, rows = _start(request, choices)
        return _page(request, choices, form, rows)
    if any(name in request.POST for name in ("add", "copy", "remove", "sweep_rows", "add_column", "refresh")):
        unbound = ExperimentForm(choices, initial=request.POST.dict())
        change = swept_rows if "sweep_rows" in request.POST else changed_rows
        page = _page(request, choices, unbound, change(choices, request.POST))
        page["HX-Trigger-After-Settle"] = "rows-changed"
        return page
    form, rows = _bound(request, choices)
    if "cpu_sets" in request.POST:
        return _with_cpu_sets(request, choices, form, rows)
    if form.is_valid() & rows.are_valid():
        made = _make(request, form, rows)
        if made is not None:
            return redirect("experiment", request.team.slug, made.pk)
    return _page(request, choices, form, rows, status=422)


def _with_cpu_sets(request: TeamRequest, choices: TeamChoices, form: ExperimentForm, rows: Rows) -> HttpResponse:
    """The form with versions of workload and applications that have the proposed CPU sets."""
    typed = request.POST.copy()
    if form.is_valid() & rows.are_valid():
        workload = form.cleaned_data["workload"]
        asked = {
            row: choice_with(variant.candidate(is_baseline=is_baseline), workload) for row, variant, is_baseline in rows
        }
        try:
            if (sets := proposed(list(asked.values()))) is not None:
                for row, choice in asked.items():
                    application, load = bound(request.member, choice, sets)
                    typed[f"v{row}-application"], typed["workload"] = str(application.pk), str(load.pk)
        except RequestError as error:
            refuse(form, error)
            return _page(request, choices, form, rows, status=422)
    unbound = ExperimentForm(
        choices, initial=typed.dict() | {name: typed.getlist(name) for name in ("gate_metrics", "profilers")}
    )
    return _page(request, choices, unbound, changed_rows(choices, typed))


@require_POST
@team_view(role=Role.LAUNCHER)
def experiment_preview(request: TeamRequest) -> HttpResponseBase:
    """Preflight of every variant, the plan of the baseline, cost, and the API call; never an error page."""
    form, rows = _bound(request, TeamChoices(request.team))
    if not (form.is_valid() & rows.are_valid()):
        missing = [str(form[name].label) for name in form.errors if name in form.fields]
        for position, variant in enumerate(rows.forms.values(), start=1):
            names = [name for name in variant.errors if name in variant.fields]
            missing += [f"{variant[name].label} of variant {position}" for name in names]
        missing += [rows.note.removesuffix(".")] if rows.note else []
        return render(request, "launching/beside.html", {"missing": missing})
    workload = form.cleaned_data["workload"]
    previews, arms, asked = {}, [], []
    for row, variant, is_baseline in rows:
        candidate = variant.candidate(is_baseline=is_baseline)
        asked.append(choice_with(candidate, workload))
        previews[row] = (candidate.name, preview_of(request, asked[-1]))
        arms.append(Arm(candidate.name, candidate.recipe, candidate.sut, is_baseline))
    name, shown = previews[rows.baseline]
    url = api_url(request, "experiments")
    context = {
        **shown,
        "checks": _merged(previews),
        "plan_of": name,
        "cpu_sets": proposed(asked),
        "forecast": forecast(
            workload,
            arms,
            rules=form.rules(),
            repetitions=form.cleaned_data["repetitions"],
            metric=form.cleaned_data["primary_metric"],
            margin_ratio=form.cleaned_data["margin_pct"] / 100,
            order=form.cleaned_data["order"],
            profilers=form.cleaned_data["profilers"] or None,
        ),
        "curl": "\n".join(
            (
                curl(url, _api_body(form, rows)),
                "# then, with the id of the answer:",
                curl(f"{url}/ID/launch", urgency_parts(form.cleaned_data, retries=EXPERIMENT_RETRIES)),
            )
        ),
    }
    return render(request, "launching/beside.html", context)


def _make(request: TeamRequest, form: ExperimentForm, rows: Rows) -> Experiment | None:
    """The experiment, launched unless it is to stay a draft; None when the form shows why not."""
    cleaned = form.cleaned_data
    experiment = None
    try:
        check_priority(request.member, cleaned["priority"])  # a draft that cannot be launched is not what was asked for
        experiment = create_experiment(
            request.member,
            name=cleaned["name"],
            question=cleaned["question"],
            workload=cleaned["workload"],
            candidates=[variant.candidate(is_baseline=is_baseline) for _, variant, is_baseline in rows],
            repetitions=cleaned["repetitions"],
            order=cleaned["order"],
            primary_metric=cleaned["primary_metric"],
            margin_ratio=cleaned["margin_pct"] / 100,
            labels=cleaned["labels"],
            rules=form.rules(),
            profilers=cleaned["profilers"] or None,
        )
        if "draft" not in request.POST:
            launch_experiment(request.member, experiment, priority=cleaned["priority"], retries=cleaned["retries"])
    except RequestError as error:
        refuse(form, error)
        return None
    return experiment


def _api_body(form: ExperimentForm, rows: Rows) -> dict[str, Any]:
    cleaned = form.cleaned_data
    body: dict[str, Any] = {
        "name": cleaned["name"],
        "workload": versioned(cleaned["workload"]),
        "repetitions": cleaned["repetitions"],
        "order": cleaned["order"],
        "primary_metric": cleaned["primary_metric"],
        "margin_ratio": cleaned["margin_pct"] / 100,
        "variants": [
            {
                "name": variant.cleaned_data["name"],
                **variant.api_parts(),
                **({"is_baseline": True} if is_baseline else {}),
            }
            for _, variant, is_baseline in rows
        ],
    }
    usual = Rules()
    rules = {key: value for key, value in form.rules().fields().items() if value != usual.fields()[key]}
    return body | rules | {key: cleaned[key] for key in ("question", "labels", "profilers") if cleaned[key]}


def _merged(previews: dict[str, tuple[str, dict[str, Any]]]) -> list[Check]:
    """Each finding once; what concerns one variant alone names it."""
    seen: dict[Check, list[str]] = {}
    for name, found in previews.values():
        for check in found["checks"]:
            seen.setdefault(check, []).append(name)
    merged = [
        check
        if len(names) == len(previews) or check.result == "pass"
        else Check(check.result, f"{', '.join(names)}: {check.sentence}")
        for check, names in seen.items()
    ]
    return worst_first(merged)


def _start(request: TeamRequest, choices: TeamChoices) -> tuple[ExperimentForm, Rows]:
    if name := request.GET.get("template", ""):
        return template_rows(request, choices, name)
    source = id_in(request.GET.get("from", ""))
    if number := id_in(request.GET.get("run", "")):
        return run_rows(choices, find_run(request, number))
    if source is None:
        parts = last_parts(request)
        place = {name: parts.get(name) for name in ("application", "sut", "drivers")}
        blank = {
            str(row): VariantForm(choices, prefix=f"v{row}", initial=initial)
            for row, initial in enumerate((parts | {"name": "baseline"}, place | {"name": "candidate"}))
        }
        return ExperimentForm(choices, initial={"workload": parts.get("workload")}), Rows(blank, "0")
    variants = Variant.objects.select_related("drivers").prefetch_related("drivers__hosts").order_by("position")
    found = (
        Experiment.objects.for_team(request.team)
        .filter(pk=source)
        .prefetch_related(Prefetch("variants", variants))
        .first()
    )
    if found is None:
        raise NotFound("There is no such experiment to copy.")
    form = ExperimentForm(
        choices,
        initial={
            "name": f"{found.name} (copy)",
            "question": found.question,
            "workload": found.workload_id,
            "repetitions": found.repetitions,
            "order": found.order,
            "primary_metric": found.primary_metric,
            "margin_pct": round(found.margin_ratio * 100, 4),
            "target_pct": None if found.target_ratio is None else round(found.target_ratio * 100, 4),
            **{name: getattr(found, name) for name in RULE_NAMES},
            "labels": found.labels,
        },
    )
    forms, baseline = {}, "0"
    for row, variant in enumerate(found.variants.all()):
        initial = {"name": variant.name} | {name: getattr(variant, f"{name}_id") for name in PART_NAMES}
        initial["drivers"] = [host.pk for host in variant.drivers.in_order]
        initial |= {f"m_{role}": pk for role, pk in variant.drivers.member_ids.items()}
        initial |= {f"p_{name}": parameter_text(value) for name, value in variant.parameters.items()}
        initial |= {name: getattr(variant, name) for name in OWN_LOAD}
        forms[str(row)] = VariantForm(choices, prefix=f"v{row}", initial=initial)
        baseline = str(row) if variant.is_baseline else baseline
    return form, Rows(forms, baseline)


def _bound(request: TeamRequest, choices: TeamChoices) -> tuple[ExperimentForm, Rows]:
    return ExperimentForm(choices, request.POST), bound_rows(choices, request.POST)


def _page(
    request: TeamRequest, choices: TeamChoices, form: ExperimentForm, rows: Rows, status: int = 200
) -> HttpResponse:
    context = {"form": form, "rows": rows, "count": len(rows.forms), "sweepable": sweepable(rows)}
    context |= {"missing": choices.missing()}
    return render(request, "new_experiment/page.html", context, status=status)
