"""Published figures as imported runs: judged like any other, so a wrong measurement is shown as one."""

from __future__ import annotations

from django.db import transaction

from experiments.asking.intake.imports import import_reports
from experiments.asking.intake.timers import import_timers
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import Recorded, RecordedReport
from experiments.asking.library.install import install_recipe, save_shipped
from experiments.models import Member, Role, Run, Workload
from experiments.registry.teams.access import require

PUBLISHED, VARIANT = "published", "variant"
"""Labels of the runs: which figures, and which of them."""


@transaction.atomic
def import_published(member: Member, recorded: Recorded) -> list[Run]:
    """One run for each report, with its recipe and workload; those that the team has already are not doubled."""
    require(member, Role.EDITOR)
    known = {report.name: run for report, run in published_runs(member, recorded)}
    workload = _install_workload(member, recorded.workload) if recorded.workload else ""
    return [known.get(report.name) or _import(member, recorded, report, workload) for report in recorded.reports]


def published_runs(member: Member, recorded: Recorded) -> list[tuple[RecordedReport, Run]]:
    """The reports that the team has imported, each with its first run."""
    runs = Run.objects.for_team(member.team).filter(
        labels__contains={PUBLISHED: recorded.name}, origin=Run.Origin.IMPORTED
    )
    first = {run.labels.get(VARIANT): run for run in runs.order_by("-number")}
    return [(report, first[report.name]) for report in recorded.reports if report.name in first]


def _import(member: Member, recorded: Recorded, report: RecordedReport, workload: str) -> Run:
    (run,) = import_reports(
        member,
        kind=recorded.kind,
        text=report.content(),
        command=report.command or recorded.command,
        machine=catalogue.recorded_text(report.machine) if report.machine else "",
        labels={PUBLISHED: recorded.name, VARIANT: report.name, **report.labels},
        recipe=install_recipe(member, report.recipe).name if report.recipe else "",
        workload=workload,
    )
    for name, file in report.timers.items():
        import_timers(member, run, name=name, text=catalogue.recorded_text(file))
    return run


def _install_workload(member: Member, name: str) -> str:
    shipped = catalogue.workload(name)
    values = {key: value for key, setting in shipped.settings.items() if (value := setting.at("published")) is not None}
    return save_shipped(member, Workload, shipped, values).name
