"""The report of an experiment and of a run: as data, as Markdown, as CSV, as PDF."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query

from experiments.api.finding import find_experiment, find_run
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.shapes import experiment_url, run_url
from experiments.api.verdicts import absolute
from experiments.telling.reports.csv_text import report_csv
from experiments.telling.reports.markdown import report_markdown
from experiments.telling.reports.report import ExperimentReport, report_of
from experiments.telling.sharing.experiment_sheet import experiment_sheet
from experiments.telling.sharing.run_sheet import run_sheet
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.sheet_files import sheet_file
from experiments.telling.sharing.texts import sheet_csv, sheet_markdown

router = Router(auth=READ, tags=["experiments"])
of_runs = Router(auth=READ, tags=["runs"])

_FORMS = {
    "responses": {
        200: {
            "content": {
                "text/markdown": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
                "application/pdf": {"schema": {"type": "string", "format": "binary"}},
            }
        }
    }
}
Form = Literal["json", "markdown", "csv", "pdf"]


@router.get(
    "/{int:experiment_id}/report",
    response=ExperimentReport,
    openapi_extra=_FORMS,
)
def experiment_report(
    request: HttpRequest,
    experiment_id: int,
    wanted: Form = Query("json", alias="format"),
) -> ExperimentReport | HttpResponse:
    """The report as it stands, also while runs are open; `format` gives it as Markdown, CSV or PDF instead of JSON.

    409 for a PDF of a draft: there is nothing to print.
    """
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    page = absolute(request, f"{experiment_url(member.team.slug, experiment.pk)}report/")
    if wanted == "pdf":
        return sheet_file(experiment_sheet(experiment), "pdf", name=f"experiment-{experiment_id}", url=page)
    report = report_of(experiment, base_url=absolute(request, "/").rstrip("/"))
    if wanted == "markdown":
        return HttpResponse(report_markdown(report, url=page), content_type="text/markdown; charset=utf-8")
    if wanted == "csv":
        return HttpResponse(report_csv(report), content_type="text/csv; charset=utf-8")
    return report


@of_runs.get(
    "/{int:number}/report",
    response=Sheet,
    openapi_extra=_FORMS,
)
def run_report(
    request: HttpRequest,
    number: int,
    wanted: Form = Query("json", alias="format"),
) -> Sheet | HttpResponse:
    """A finished run in words: answer, figures, verdicts, checks. 409 while it is not finished."""
    member = member_of(request)
    run = find_run(member, number)
    sheet = run_sheet(run)
    page = run_url(member.team.slug, number)
    if wanted == "pdf":
        return sheet_file(sheet, "pdf", name=f"run-{number}", url=page)
    if wanted == "markdown":
        text = sheet_markdown(sheet, url=page)
        return HttpResponse(text, content_type="text/markdown; charset=utf-8")
    if wanted == "csv":
        return HttpResponse(sheet_csv(sheet), content_type="text/csv; charset=utf-8")
    return sheet
