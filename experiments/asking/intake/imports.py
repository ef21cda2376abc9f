"""Imports: the report of a tool that ran elsewhere becomes a run without execution."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.base.errors import ParseError
from agents.drivers.reading import read_report
from agents.facts.host import HostFacts
from agents.results.report import LoadReport
from agents.results.spectrum import spectrum_of
from experiments.analysis.thresholds import Thresholds
from experiments.judging.alerts.trends import follow
from experiments.judging.evidence.judgement import findings_json, judge
from experiments.judging.evidence.thresholds import thresholds_of
from experiments.models import Application, Document, Member, Recipe, Role, Run, Workload
from experiments.registry.documents.versions import noun
from experiments.registry.errors import RequestError
from experiments.registry.hosts.profiles import described_profiles, read_description
from experiments.registry.metrics.normalisation import described_cpus, per_cpu
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import declared, figures
from experiments.registry.notes.labels import check_labels
from experiments.registry.runs.artifacts import keep
from experiments.registry.runs.latency_spectra import keep_spectrum
from experiments.registry.runs.series import extend_series
from experiments.registry.runs.summary import summarise
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.quotas import admit_runs

MAX_REPORT_CHARS = 5_000_000


def import_report(
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
) -> Run:
    """Store a report as a finished run; names refer to the newest versions of the team's documents.

    `machine` describes the SUT by what `agents.facts.described.COMMANDS` printed there; its hardware is part of the
    run's fingerprint. What a text cannot be read as is a RequestError (`text`, `kind`, `command`, `machine`). A tool
    that did not run at all is stored as a failed run, with the tool's own message.
    """
    require(member, Role.LAUNCHER)
    checked_labels = check_labels(labels or {})
    if measured_at is not None and timezone.is_naive(measured_at):
        raise RequestError("measured_at needs an offset, for example Z.", field="measured_at")
    report = _read(kind, text, command)
    facts = read_description(machine, field="machine")
    found = report.to_json()
    with transaction.atomic():
        run = Run(
            team_id=member.team_id,
            number=admit_runs(member.team, 1, queued=False),
            origin=Run.Origin.IMPORTED,
            state=Run.State.FINISHED,
            labels=checked_labels,
            application=_named(member, Application, application),
            recipe=_named(member, Recipe, recipe),
            workload=_named(member, Workload, workload),
            created_by_id=member.user_id,
        )
        run.finished_at = run.measured_at = measured_at or timezone.now()
        if facts is not None:
            (run.sut_profile,) = described_profiles(member.team, [facts]).values()
        _fill(run, report, found, facts, thresholds_of(member.team))
        run.save()
        learn(member.team, declared(found))
        if run.outcome == Run.Outcome.SUCCEEDED:
            _add_to_series(run, report)
        keep(run, f"{report.format}.txt", text.encode())
        keep_spectrum(run, spectrum_of(report))
        record(member, "run.import", f"run #{run.number}", after={"kind": kind, "labels": checked_labels})
    return run


def _read(kind: str, text: str, command: str) -> LoadReport:
    if not text.strip():
        raise RequestError("The report is empty.", field="text")
    if len(text) > MAX_REPORT_CHARS:
        raise RequestError(f"A report has at most {MAX_REPORT_CHARS} characters.", field="text")
    try:
        return read_report(kind, text, command)
    except ParseError as error:
        line = f" (line {error.line})" if error.line is not None else ""
        hint = f" {error.hint}" if error.hint else ""
        field = "kind" if "no reader" in error.message else "command" if "command line" in error.message else "text"
        raise RequestError(f"{error.message}{line}.{hint}", field=field) from error


def _named(member: Member, model: type[Document], name: str) -> Any:
    if not name:
        return None
    found = model.objects.for_team(member.team).newest_versions().filter(name=name).first()
    if found is None:
        raise RequestError(f"There is no {noun(model)} named {name[:120]!r}.", field=noun(model))
    return found


def _fill(
    run: Run, report: LoadReport, found: Mapping[str, Any], facts: HostFacts | None, thresholds: Thresholds
) -> None:
    if not report.complete:
        run.outcome, run.validity = Run.Outcome.FAILED, Run.Validity.INVALID
        run.failure = report.error or "The tool did not run."
        return
    validity = judge(found, thresholds=thresholds)
    run.outcome = Run.Outcome.SUCCEEDED
    run.validity, run.hides_latency = validity.state, validity.hides_latency
    run.findings = findings_json(validity)
    metrics = figures(found)
    cpus = described_cpus(run.labels, facts.profile() if facts else {})
    summarise(run, metrics | per_cpu(metrics, cpus))


def _add_to_series(run: Run, report: LoadReport) -> None:
    """Imported runs of one application, workload, tool, load and machine form a series, apart from executed ones."""
    parts = [
        "imported",
        str(run.application or ""),
        str(run.workload or report.url or ""),
        report.tool,
        report.latency_basis,
        str(report.connections),
        str(report.threads),
        str(report.offered_rate_rps),
    ]
    if run.sut_profile:
        parts.append(run.sut_profile.digest)
    run.fingerprint = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    run.save(update_fields=["fingerprint"])
    if run.validity not in Run.USABLE:  # it can be looked at, and is no part of any history
        return
    series = extend_series(
        run,
        application=str(run.application or "imported"),
        workload=str(run.workload or report.url or "imported"),
        tool=f"{report.tool} (imported)",
        latency_basis=report.latency_basis,
    )
    follow(run, series)
