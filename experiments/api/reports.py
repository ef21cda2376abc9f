"""The report of an experiment and of a run: as data, as Markdown, as CSV."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query

from experiments.api.finding import find_experiment, find_run
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.shapes import experiment_url
from experiments.api.verdicts import absolute
from experiments.telling.reports.csv_text import report_csv
from experiments.telling.reports.markdown import report_markdown
from experiments.telling.reports.report import ExperimentReport, report_of
from experiments.telling.sharing.run_sheet import run_sheet
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.texts import sheet_csv, sheet_markdown

router = Router(auth=READ, tags=["experiments"])
of_runs = Router(auth=READ, tags=["runs"])

_TEXT = {"schema": {"type": "string"}}


@router.get(
    "/{int:experiment_id}/report",
    response=ExperimentReport,
    openapi_extra={"responses": {200: {"content": {"text/markdown": _TEXT, "text/csv": _TEXT}}}},
)
def experiment_report(
    request: HttpRequest,
    experiment_id: int,
    wanted: Literal["json", "markdown", "csv"] = Query("json", alias="format"),
) -> ExperimentReport | HttpResponse:
    """The report as it stands, also while runs are open; `format` gives it as Markdown or CSV instead of JSON."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    report = report_of(experiment, base_url=absolute(request, "/").rstrip("/"))
    if wanted == "markdown":
        url = absolute(request, f"{experiment_url(member.team.slug, experiment.pk)}report/")
        return HttpResponse(report_markdown(report, url=url), content_type="text/markdown; charset=utf-8")
    if wanted == "csv":
        return HttpResponse(report_csv(report), content_type="text/csv; charset=utf-8")
    return report


@of_runs.get(
    "/{int:number}/report",
    response=Sheet,
    openapi_extra={"responses": {200: {"content": {"text/markdown": _TEXT, "text/csv": _TEXT}}}},
)
def run_report(
    request: HttpRequest,
    number: int,
    wanted: Literal["json", "markdown", "csv"] = Query("json", alias="format"),
) -> Sheet | HttpResponse:
    """A finished run in words: answer, figures, verdicts, checks. 409 while it is not finished."""
    member = member_of(request)
    run = find_run(member, number)
    sheet = run_sheet(run)
    if wanted == "markdown":
        text = sheet_markdown(sheet, url=absolute(request, f"/t/{member.team.slug}/runs/{number}/"))
        return HttpResponse(text, content_type="text/markdown; charset=utf-8")
    if wanted == "csv":
        return HttpResponse(sheet_csv(sheet), content_type="text/csv; charset=utf-8")
    return sheet
