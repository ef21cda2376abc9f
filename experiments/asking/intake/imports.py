"""The door for reports: what a tool wrote elsewhere becomes a run without execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from agents.base.errors import ParseError
from agents.drivers.reading import read_report, split_report
from agents.results.report import LoadReport
from experiments.asking.intake.finished_result import FinishedResult, History
from experiments.asking.intake.finished_runs import store_runs
from experiments.models import Member, Role, Run
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.teams.access import require

MAX_REPORT_CHARS = 5_000_000


def import_reports(
    member: Member,
    *,
    kind: str,
    text: str,
    command: str = "",
    labels: Mapping[str, str] | None = None,
    application: str = "",
    recipe: str = "",
    workload: str = "",
    measured_at: datetime | None = None,
    machine: str = "",
    split: bool = False,
) -> list[Run]:
    """Store a report as a finished run, or with `split` each run that its text holds: all of them, or none.

    Names refer to the newest versions of the team's documents. `machine` describes the SUT by what
    `agents.facts.described.COMMANDS` printed there; its hardware is part of the run's fingerprint. What a text cannot
    be read as is a RequestError (`text`, `kind`, `command`, `machine`). A tool that did not run at all is stored as a
    failed run, with the tool's own message.
    """
    require(member, Role.LAUNCHER)  # before megabytes are read
    results = []
    for part in _parts(kind, text) if split else [text]:
        report = _read(kind, part, command)
        results.append(
            FinishedResult(
                report=report,
                history=_history(report),
                output_seen=True,
                output=(f"{report.format}.txt", part),
                application=application,
                recipe=recipe,
                workload=workload,
                machine=machine,
                measured_at=measured_at,
                labels=labels or {},
            )
        )
    said = {"kind": kind, "labels": dict(labels or {})}
    return store_runs(member, results, action="run.import", said=said)


def _parts(kind: str, text: str) -> Sequence[str]:
    if len(text) > MAX_REPORT_CHARS:
        raise RequestError(f"A report has at most {MAX_REPORT_CHARS:,} characters.", field="text")
    try:
        return split_report(kind, text)
    except ParseError as error:
        raise _refused(error) from error


def _read(kind: str, text: str, command: str) -> LoadReport:
    if not text.strip():
        raise RequestError("The report is empty.", field="text")
    if len(text) > MAX_REPORT_CHARS:
        raise RequestError(f"A report has at most {MAX_REPORT_CHARS:,} characters.", field="text")
    try:
        report = read_report(kind, text, command)
    except ParseError as error:
        raise _refused(error) from error
    if (known := next((own.name for own in report.own_metrics if own.name in METRICS), None)) is not None:
        raise RequestError(f"{known!r} is known to BenchHub; give your figure another name.", field="text")
    return report


def _refused(error: ParseError) -> RequestError:
    line = f" (line {error.line})" if error.line is not None else ""
    hint = f" {error.hint}" if error.hint else ""
    field = "kind" if "no reader" in error.message else "command" if "command line" in error.message else "text"
    return RequestError(f"{error.message}{line}.{hint}", field=field)


def _history(report: LoadReport) -> History:
    """Imported runs of one application, workload, tool, load and machine form a series, apart from executed ones."""
    load = (report.connections, report.threads, report.offered_rate_rps)
    shared = (report.tool, report.latency_basis, *map(str, load))
    return History("imported", shared, title="imported", url=report.url or "")
