"""The report of an experiment: as data, as Markdown, as CSV."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query

from experiments.api.auth import READ, member_of
from experiments.api.finding import find_experiment
from experiments.api.shapes import experiment_url
from experiments.api.verdicts import absolute
from experiments.reports.csv_text import report_csv
from experiments.reports.markdown import report_markdown
from experiments.reports.report import ExperimentReport, report_of

router = Router(auth=READ, tags=["experiments"])


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
