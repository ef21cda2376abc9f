"""Reports: an experiment's as a page that prints and as files, with its single plots; a run's as files."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from experiments.judging.comparing.comparison import comparable_runs
from experiments.telling.reports.csv_text import report_csv
from experiments.telling.reports.markdown import effect_texts, report_markdown
from experiments.telling.reports.plots import plots_of
from experiments.telling.reports.report import ExperimentReport, VariantCurve, report_of
from experiments.telling.sharing.experiment_sheet import experiment_sheet
from experiments.telling.sharing.run_sheet import run_sheet
from experiments.telling.sharing.sheet_files import sheet_file
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_experiment, find_run
from frontend.shared.refusals import RefusalSaid


@require_safe
@team_view()
def experiment_report(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The page. It needs no script, so that what is printed is what is seen."""
    report = _report(request, experiment_id)
    return render(
        request,
        "report/page.html",
        {
            "report": report,
            "effects": effect_texts(report.factor_map) if report.factor_map else [],
            "plots": plots_of(report),
            "curves": {"rows": _percentile_rows(report.curves)},
            "has_looks": any(change.looks for change in report.changes),
            "compared": comparable_runs(request.team, report.compared_runs),
            "url": request.build_absolute_uri(request.path),
        },
    )


@require_safe
@team_view()
def experiment_report_markdown(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The report as Markdown; its plots are links to the SVGs of this installation."""
    report = _report(request, experiment_id)
    plots = [(plot.title, _plot_url(request, experiment_id, plot.name)) for plot in plots_of(report)]
    page = request.build_absolute_uri(reverse("experiment_report", args=[request.team.slug, experiment_id]))
    text = report_markdown(report, url=page, plots=plots)
    return _file(text, "text/markdown; charset=utf-8", f"experiment-{experiment_id}.md")


@require_safe
@team_view()
def experiment_report_csv(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """All variants and metrics, one line each."""
    report = _report(request, experiment_id)
    return _file(report_csv(report), "text/csv; charset=utf-8", f"experiment-{experiment_id}.csv")


@require_safe
@team_view()
def experiment_report_pdf(request: TeamRequest, experiment_id: int) -> HttpResponse:
    """The report as PDF, without the documents to repeat it with: those are on the page and in the Markdown."""
    here = reverse("experiment_report", args=[request.team.slug, experiment_id])
    with RefusalSaid(request):
        sheet = experiment_sheet(find_experiment(request, experiment_id))
        return sheet_file(sheet, "pdf", name=f"experiment-{experiment_id}", url=request.build_absolute_uri(here))
    return redirect(here)


@require_safe
@team_view()
def run_report(request: TeamRequest, number: int, form: str) -> HttpResponse:
    """A finished run as Markdown, CSV or PDF: its answer, figures, verdicts and checks."""
    here = reverse("run", args=[request.team.slug, number])
    with RefusalSaid(request):
        sheet = run_sheet(find_run(request, number))
        return sheet_file(sheet, form, name=f"run-{number}", url=request.build_absolute_uri(here))
    return redirect(here)


@require_safe
@team_view()
def experiment_report_plot(request: TeamRequest, experiment_id: int, plot_name: str) -> HttpResponse:
    """One plot as an SVG of its own."""
    plot = next((plot for plot in plots_of(_report(request, experiment_id)) if plot.name == plot_name), None)
    if plot is None:
        raise Http404("No such plot.")
    return render(request, "plots/plot.svg", {"plot": plot}, content_type="image/svg+xml")


def _report(request: TeamRequest, experiment_id: int) -> ExperimentReport:
    return report_of(find_experiment(request, experiment_id), base_url=request.build_absolute_uri("/").rstrip("/"))


def _plot_url(request: TeamRequest, experiment_id: int, name: str) -> str:
    path = reverse("experiment_report_plot", args=[request.team.slug, experiment_id, name])
    return request.build_absolute_uri(path)


def _percentile_rows(curves: tuple[VariantCurve, ...]) -> list[tuple[str, list[float | None]]]:
    """For each percentile that any variant supports, the latency of each in ms."""
    values = [{point.percentile: point.value_ms for point in curve.points} for curve in curves]
    marks = sorted({mark for one in values for mark in one})
    return [(f"{mark:g}", [one.get(mark) for one in values]) for mark in marks]


def _file(text: str, content_type: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=content_type)
    response.headers["Content-Disposition"] = f'inline; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
