"""A result as a door read it, and the run that it makes: checked and judged, not stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.utils import timezone

from agents.base.redaction import without_secrets
from agents.drivers.command.figures import MAX_VALUE
from agents.facts.host import HostFacts
from agents.results.report import LoadReport
from agents.steps.recipe import Value
from experiments.analysis.thresholds import Thresholds
from experiments.analysis.validity import Finding
from experiments.asking.intake.sent_results import SentSeries
from experiments.asking.intake.series import check_series
from experiments.judging.evidence.judgement import asked_duration_s, findings_json, judge
from experiments.judging.evidence.load_course import course_of_report
from experiments.models import Application, Document, Member, Recipe, Run, Workload
from experiments.registry.documents.configuration import IN_PART, PARAMETERS
from experiments.registry.documents.versions import noun
from experiments.registry.errors import RequestError
from experiments.registry.metrics.normalisation import described_cpus, per_cpu
from experiments.registry.metrics.vocabulary import MetricSpec, declared, figures
from experiments.registry.notes.labels import check_labels, check_tags
from experiments.registry.runs.parameters import parameter_texts
from experiments.registry.runs.snapshots import content_digest
from experiments.registry.runs.summary import summarise

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_UNSEEN = "Reported by others and not verified: BenchHub saw neither the tool's output nor the hosts."


@dataclass(frozen=True)
class History:
    """Which runs are points of one series, beside their application, workload and machine: those that share all this.

    `title` stands for the application or workload of the series where none is named, `url` for the workload before it.
    `part` says which benchmark of the workload it is.
    """

    came: Literal["imported", "reported"]
    shared: tuple[str, ...]
    title: str
    url: str = ""
    part: str = ""


@dataclass(frozen=True)
class FinishedResult:
    """What somebody measured, as a door read it; names, labels, times and series are as they came.

    A report that is not complete is of a run that failed, for the reason in its `error`. `figures` are known beside
    the report. `output` is the text behind the figures by the name of the file that keeps it; `output_seen` says
    whether it is the tool's own. `follow` is a figure that is judged and watched unasked.
    """

    report: LoadReport
    history: History | None
    output_seen: bool
    output: tuple[str, str] | None = None
    follow: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    application: str = ""
    recipe: str = ""
    workload: str = ""
    machine: str = ""
    measured_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    notes: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    series: Sequence[SentSeries] = ()


@dataclass(frozen=True)
class ReadResult:
    """A result that makes sense: its run, which has no number yet, and what belongs to it."""

    result: FinishedResult
    run: Run
    machine: HostFacts | None
    configuration: Mapping[str, str]
    digest: str
    own_metrics: Sequence[MetricSpec]


def read_result(
    member: Member,
    result: FinishedResult,
    thresholds: Thresholds,
    documents: Mapping[type[Document], Mapping[str, Any]],
    machine: HostFacts | None,
    now: datetime,
) -> ReadResult:
    """Judge a result and make its run, with `documents` by name and the `machine` that it describes.

    `now`: the database's time.

    RequestError names the field that makes no sense.
    """
    measured_at = _checked_time(result.measured_at, now)
    check_series(result.series)
    configuration = _configuration(result.parameters)
    run = Run(
        team_id=member.team_id,
        origin=Run.Origin.IMPORTED,
        state=Run.State.FINISHED,
        labels=check_labels(result.labels),
        tags=check_tags(result.tags),
        parameters=parameter_texts(result.parameters),
        notes=result.notes,
        application=_named(documents, Application, result.application),
        recipe=_named(documents, Recipe, result.recipe),
        workload=_named(documents, Workload, result.workload),
        created_by_id=member.user_id,
        measured_at=measured_at,
        finished_at=measured_at,
    )
    report = result.report.to_json()
    if result.report.complete:
        _judge(run, report, thresholds, output_seen=result.output_seen, has_own_figures=bool(result.follow))
        metrics = {**result.figures, **figures(report)}
        summarise(run, _per_cpu(metrics, run.labels, machine) | metrics)
        run.fingerprint = _fingerprint(run, result.history, machine)
    else:
        run.outcome, run.validity = Run.Outcome.FAILED, Run.Validity.INVALID
        run.failure = without_secrets(result.report.error or "The tool did not run.")
    return ReadResult(result, run, machine, configuration, content_digest(configuration), declared(report))


def _named(documents: Mapping[type[Document], Mapping[str, Any]], model: type[Document], name: str) -> Any:
    name = name.strip()
    if name and name not in documents[model]:
        raise RequestError(f"There is no {noun(model)} named {name[:120]!r}.", field=noun(model))
    return documents[model][name] if name else None


def _checked_time(measured_at: datetime | None, now: datetime) -> datetime:
    """When it was measured, now when nobody said; RequestError for a time that cannot be."""
    if measured_at is None:
        return now
    if timezone.is_naive(measured_at):
        raise RequestError("measured_at needs an offset, for example Z.", field="measured_at")
    if not _EARLIEST <= measured_at <= now + timedelta(days=1):
        raise RequestError("measured_at must lie between 1970 and now.", field="measured_at")
    return measured_at


def _configuration(parameters: Mapping[str, Value]) -> dict[str, str]:
    """The parameters as the part of a configuration that is known; nothing when there are none."""
    if not parameters:
        return {}
    found = {IN_PART: "only what was reported"}
    for name, text in parameter_texts(parameters).items():
        if not 1 <= len(name) <= 120 or not name.isprintable():
            raise RequestError("The name of a parameter has 1 to 120 printable characters.", field="parameters")
        if len(text) > 1000:
            raise RequestError("The value of a parameter has at most 1,000 characters.", field=f"parameters.{name}")
        found[PARAMETERS + name] = text
    return found


def _judge(
    run: Run, report: Mapping[str, object], thresholds: Thresholds, *, output_seen: bool, has_own_figures: bool
) -> None:
    validity = judge(
        report,
        least_duration_s=asked_duration_s(report),
        course=course_of_report(report),
        has_own_figures=has_own_figures,
        thresholds=thresholds,
    )
    if not output_seen:
        validity = replace(validity, findings=tuple(_as_reported(finding) for finding in validity.findings))
    run.outcome, run.validity, run.hides_latency = Run.Outcome.SUCCEEDED, validity.state, validity.hides_latency
    run.findings = findings_json(validity)


def _as_reported(finding: Finding) -> Finding:
    return replace(finding, sentence=_UNSEEN) if finding.check == "hosts" else finding


def _per_cpu(metrics: Mapping[str, float], labels: Mapping[str, str], machine: HostFacts | None) -> dict[str, float]:
    found = per_cpu(metrics, described_cpus(labels, machine.profile() if machine else {}))
    return {name: value for name, value in found.items() if value <= MAX_VALUE}  # a share of the CPU may be tiny


def _fingerprint(run: Run, history: History | None, machine: HostFacts | None) -> str:
    """What runs of one series share, apart from executed ones; empty for a run that is in none."""
    if history is None:
        return ""
    parts = [history.came, str(run.application or ""), str(run.workload or history.url), *history.shared]
    if machine is not None:
        parts.append(machine.digest())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
