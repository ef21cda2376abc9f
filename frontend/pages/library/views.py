"""The library: experiments and tuning searches by work, each installed with the team's hosts, and published figures."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, Item, TuningTemplate
from experiments.asking.library.families import choices_of, entries
from experiments.asking.library.finding import mentions
from experiments.asking.library.fit import fits
from experiments.asking.library.install import install
from experiments.asking.library.published import import_published, published_runs
from experiments.asking.library.tuning_searches import tried
from experiments.asking.tunings.wording import shown as value_text
from experiments.judging.comparing.machines import machines_of_runs
from experiments.models import Role, Run
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.metrics.vocabulary import METRICS, label_of
from frontend.charts.machines import with_charts
from frontend.pages.library.forms import InstallForm
from frontend.shared.access import TeamRequest, team_view


@require_safe
@team_view()
def library(request: TeamRequest) -> HttpResponseBase:
    """Everything that is shipped, by work; `?q=` narrows it to what has these words."""
    asked = request.GET.get("q", "").replace("\0", "").strip()[:200]
    templates = [one for one in catalogue.templates() if mentions(one, asked)]
    tunings = [one for one in catalogue.tunings() if mentions(one, asked)]
    recorded = [one for one in map(catalogue.recorded, catalogue.names("recorded")) if mentions(one, asked)]
    works = [
        {
            "number": number,
            "title": title,
            "templates": entries([one for one in templates if number in one.works]),
            "tunings": [one for one in tunings if number in one.works],
            "recorded": [one for one in recorded if number in one.works],
        }
        for number, title in catalogue.WORKS.items()
    ]
    shown = [work for work in works if work["templates"] or work["tunings"] or work["recorded"]] if asked else works
    return render(request, "library/list.html", {"works": shown, "asked": asked})


@require_http_methods(["GET", "POST"])
@team_view()
def library_template(request: TeamRequest, name: str) -> HttpResponseBase:
    """One template: what it asks, its variants, where its values come from, and a form that installs it.

    POST saves its documents as versions of the team and goes on to New experiment, or New tuning search, filled in.
    """
    template = catalogue.template_or_tuning(name)
    if request.method == "GET":
        return _page(request, template, InstallForm(request.team, template))
    if not Role(request.member.role).covers(Role.EDITOR):
        raise Forbidden("Installing saves new versions, which needs the role editor.")
    form = InstallForm(request.team, template, request.POST)
    if not form.is_valid():
        return _page(request, template, form, status=422)
    try:
        ready = install(request.member, template, form.scale, form.given())
    except RequestError as error:
        form.refuse(error)
        return _page(request, template, form, status=422)
    count = len(ready.applications) + len(ready.recipes) + 1
    messages.success(request, f"{template.title}: {count} documents are in the team now.")
    chosen: dict[str, str | list[int]] = {"template": name, "scale": form.scale, **form.host_ids()}
    page = "new_tuning" if isinstance(template, TuningTemplate) else "new_experiment"
    return redirect(f"{reverse(page, args=[request.team.slug])}?{urlencode(chosen, doseq=True)}")


@require_POST
@team_view()
def library_fits(request: TeamRequest, name: str) -> HttpResponseBase:
    """What of the template does not fit the chosen hosts, for the page while its form is filled in."""
    template = catalogue.template_or_tuning(name)
    form = InstallForm(request.team, template, request.POST)
    form.is_valid()
    places = form.places()
    found = fits(template, form.scale, places, form.given()) if places else []
    return render(request, "library/_fits.html", {"fits": found, "places": places})


@require_safe
@team_view()
def library_published(request: TeamRequest, name: str) -> HttpResponseBase:
    """Published figures: what they say, and as a chart with every run's validity once they are imported."""
    recorded = catalogue.recorded(name)
    runs = published_runs(request.member, recorded)
    chart = {
        "metric": {"label": recorded.metric_label, "unit": recorded.unit},
        "reports": [
            {
                "name": report.name,
                "number": run.number,
                "value": run.metrics.get(recorded.metric),
                "active": _active_rate_rps(run),
                "validity": run.validity,
            }
            for report, run in runs
        ],
    }
    context = {"recorded": recorded, "work": catalogue.WORKS[recorded.works[0]], "chart": chart}
    context["rows"] = [(report, run, run.metrics.get(recorded.metric)) for report, run in runs]
    if recorded.metric in METRICS:
        machines = machines_of_runs([run for _, run in runs], recorded.metric)
        metric = METRICS[recorded.metric]
        context |= {"metric": metric, "machines": machines, "machine_splits": with_charts(machines, metric)}
    return render(request, "library/published.html", context)


@require_POST
@team_view(role=Role.EDITOR)
def library_import(request: TeamRequest, name: str) -> HttpResponseBase:
    """Published figures become runs without execution."""
    recorded = catalogue.recorded(name)
    runs = import_published(request.member, recorded)
    invalid = sum(run.validity == Run.Validity.INVALID for run in runs)
    plural = "" if len(runs) == 1 else "s"
    messages.success(request, f"{recorded.title}: {len(runs)} run{plural}, {invalid} of them invalid.")
    return redirect("library_published", request.team.slug, name)


def _active_rate_rps(run: Run) -> float | None:
    """Requests/s while the load lasted, of a run whose load ended early."""
    found = (finding["evidence"].get("active_rate_rps") for finding in run.findings if finding.get("evidence"))
    return next((float(rate) for rate in found if rate is not None), None)


def _page(request: TeamRequest, template: ExperimentTemplate, form: InstallForm, *, status: int = 200) -> HttpResponse:
    parts: dict[str, list[Item]] = {}
    for kind, item in catalogue.parts_of(template):
        parts.setdefault(kind, []).append(item)
    items = [template, *(item for found in parts.values() for item in found)]
    sources = dict.fromkeys(source for item in items for source in item.source)
    context = {
        "template": template,
        "choices": choices_of(template),
        "work": catalogue.WORKS[template.works[0]],
        "form": form,
        "variants": [(variant, catalogue.recipe(variant.recipe).title) for variant in template.variants],
        "parts": parts,
        "sources": list(sources),
        "settings": [
            {"name": key, "small": one.at("small"), "published": one.at("published"), "description": one.description}
            for key, one in sorted(template.settings().items())
        ],
        "yaml": catalogue.text_of(template.folder, template.name),
    }
    if isinstance(template, TuningTemplate):
        context |= {
            "tried": [(one, value_text(one.default)) for one in tried(template)],
            "metric": label_of(template.decides),
            "limits": [(label_of(metric), most) for metric, most in template.limits.items()],
            "margin_pct": round(template.margin_ratio * 100, 4),
        }
    return render(request, "library/template.html", context, status=status)
