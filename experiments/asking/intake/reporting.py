"""Results that others measured become runs without execution: one or many, all of them or none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from django.db import transaction

from agents.drivers.command.figures import FORMAT, MAX_VALUE
from agents.facts.host import HostFacts
from experiments.analysis.thresholds import Thresholds
from experiments.analysis.validity import Finding
from experiments.asking.intake.reported import (
    SentResult,
    SentSeries,
    check_series,
    check_time,
    configuration_of,
    figures_text,
    read_figures,
)
from experiments.judging.alerts.trends import follow
from experiments.judging.evidence.judgement import findings_json, judge
from experiments.judging.evidence.thresholds import thresholds_of
from experiments.models import (
    Application,
    Artifact,
    ConfigSnapshot,
    Document,
    Member,
    Recipe,
    Role,
    Run,
    SampleSeries,
    Workload,
)
from experiments.registry.documents.versions import noun
from experiments.registry.errors import RequestError
from experiments.registry.hosts.profiles import described_profiles, read_description
from experiments.registry.metrics.normalisation import described_cpus, per_cpu
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import MetricSpec, own_metric
from experiments.registry.notes.labels import check_labels, check_tags
from experiments.registry.runs.parameters import parameter_texts
from experiments.registry.runs.series import extend_series
from experiments.registry.runs.snapshots import content_digest
from experiments.registry.runs.summary import summarise
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.quotas import admit_runs

MAX_RESULTS = 100
_UNSEEN = "Reported by others and not verified: BenchHub saw neither the tool's output nor the hosts."


@dataclass(frozen=True)
class _Read:
    """A result that makes sense: its run, which has no number yet, and what belongs to it."""

    run: Run
    configuration: Mapping[str, str]
    digest: str
    machine: HostFacts | None
    series: Sequence[SentSeries]
    figures: bytes
    tool: str
    latency_basis: str
    history: str
    own_metrics: Sequence[MetricSpec]


def store_results(member: Member, results: Sequence[SentResult]) -> list[Run]:
    """Store finished runs for what others measured, in the order given; all of them, or none when one is wrong.

    The number of statements does not depend on the number of results, but for those that continue a history. A
    RequestError names the field, of several results with the place of the result in front.
    """
    require(member, Role.LAUNCHER)
    if not 1 <= len(results) <= MAX_RESULTS:
        raise RequestError(f"Send 1 to {MAX_RESULTS} results at once.", field="results")
    thresholds = thresholds_of(member.team)
    models: tuple[type[Document], ...] = (Application, Recipe, Workload)
    documents = {model: _documents(member, model, results) for model in models}
    read = []
    machines: dict[str, HostFacts | None] = {}
    for place, result in enumerate(results):
        try:
            if result.machine not in machines:
                machines[result.machine] = read_description(result.machine, field="machine")
            read.append(_read(member, result, thresholds, documents, machines[result.machine]))
        except RequestError as error:
            where = error.field if len(results) == 1 else f"results.{place}.{error.field}"
            raise RequestError(error.message, field=where) from error
    with transaction.atomic():
        _store(member, read)
    return [one.run for one in read]


def _documents(member: Member, model: type[Document], results: Iterable[SentResult]) -> dict[str, Any]:
    wanted = {name for result in results if (name := getattr(result, noun(model)))}
    if not wanted:
        return {}
    return {
        found.name: found for found in model.objects.for_team(member.team).newest_versions().filter(name__in=wanted)
    }


def _read(
    member: Member,
    result: SentResult,
    thresholds: Thresholds,
    documents: Mapping[type[Document], Mapping[str, Any]],
    machine: HostFacts | None,
) -> _Read:
    measured_at = check_time(result.measured_at)
    check_series(result.series)
    configuration = configuration_of(result.parameters)
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
    if result.failure:
        if result.metrics or result.own_metrics:
            raise RequestError("A run that failed has no figures; leave out its failure, or them.", field="metrics")
        run.outcome, run.validity, run.failure = Run.Outcome.FAILED, Run.Validity.INVALID, result.failure
    else:
        report, metrics = read_figures(result)
        _judge(run, report, thresholds)
        summarise(run, _per_cpu(metrics, result, machine) | metrics)
        run.fingerprint = _fingerprint(run, result, machine)
    return _Read(
        run=run,
        configuration=configuration,
        digest=content_digest(configuration),
        machine=machine,
        series=result.series,
        figures=figures_text(result).encode(),
        tool=result.tool,
        latency_basis=result.latency_basis,
        history=result.history,
        own_metrics=[own_metric(name, one.unit, one.direction) for name, one in result.own_metrics.items()],
    )


def _named(documents: Mapping[type[Document], Mapping[str, Any]], model: type[Document], name: str) -> Any:
    if name and name not in documents[model]:
        raise RequestError(f"There is no {noun(model)} named {name!r}.", field=noun(model))
    return documents[model][name] if name else None


def _judge(run: Run, report: Mapping[str, object], thresholds: Thresholds) -> None:
    validity = judge(report, thresholds=thresholds)
    found = tuple(_as_reported(finding) for finding in validity.findings)
    run.outcome, run.validity, run.hides_latency = Run.Outcome.SUCCEEDED, validity.state, validity.hides_latency
    run.findings = findings_json(replace(validity, findings=found))


def _as_reported(finding: Finding) -> Finding:
    return replace(finding, sentence=_UNSEEN) if finding.check == "hosts" else finding


def _per_cpu(metrics: Mapping[str, float], result: SentResult, machine: HostFacts | None) -> dict[str, float]:
    found = per_cpu(metrics, described_cpus(result.labels, machine.profile() if machine else {}))
    return {name: value for name, value in found.items() if value <= MAX_VALUE}  # a share of the CPU may be tiny


def _fingerprint(run: Run, result: SentResult, machine: HostFacts | None) -> str:
    """What runs of one history share, apart from executed and imported ones; empty for a run that is in none."""
    if not (result.history or run.application or run.workload):
        return ""
    parts = ["reported", str(run.application or ""), str(run.workload or ""), result.history, result.tool]
    parts.append(result.latency_basis)
    if machine is not None:
        parts.append(machine.digest())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _store(member: Member, read: Sequence[_Read]) -> None:
    snapshots = _snapshots(member, read)
    learn(member.team, chain.from_iterable(one.own_metrics for one in read))
    _note_machines(member, read)
    # Late: it holds up whoever else wants a number of the team.
    first = admit_runs(member.team, len(read), queued=False)
    runs = [one.run for one in read]
    for number, one in enumerate(read, start=first):
        one.run.number, one.run.config_id = number, snapshots.get(one.digest)
    Run.objects.bulk_create(runs)
    SampleSeries.objects.bulk_create(
        SampleSeries(
            run_id=one.run.pk, role=line.role, channel=line.channel, unit=line.unit, at_s=line.at_s, values=line.values
        )
        for one in read
        for line in one.series
    )
    Artifact.objects.bulk_create(
        [
            Artifact(
                run_id=one.run.pk,
                name=f"{FORMAT}.txt",
                sha256=hashlib.sha256(one.figures).hexdigest(),
                content=one.figures,
            )
            for one in read
            if one.run.outcome == Run.Outcome.SUCCEEDED
        ]
    )
    for one in read:
        _continue_history(one)
    numbers = f"run #{first}" if len(read) == 1 else f"runs #{first} to #{first + len(read) - 1}"
    record(member, "run.report", numbers, after={"runs": len(read), "tools": sorted({one.tool for one in read})})


def _note_machines(member: Member, read: Sequence[_Read]) -> None:
    described = [one.machine for one in read if one.machine is not None]
    profiles = described_profiles(member.team, described) if described else {}
    for one in read:
        if one.machine is not None:
            one.run.sut_profile = profiles[one.machine.digest()]


def _snapshots(member: Member, read: Iterable[_Read]) -> dict[str, int]:
    """Digest -> id of the configurations, stored when they are new."""
    wanted = {one.digest: one.configuration for one in read if one.configuration}
    if not wanted:
        return {}
    # Most are new, so they are not looked for first; in one order, so that nobody waits for each other.
    ConfigSnapshot.objects.bulk_create(
        [
            ConfigSnapshot(team_id=member.team_id, digest=digest, values=dict(wanted[digest]))
            for digest in sorted(wanted)
        ],
        ignore_conflicts=True,
    )
    kept = ConfigSnapshot.objects.filter(team_id=member.team_id, digest__in=wanted)
    return dict(kept.values_list("digest", "pk"))


def _continue_history(one: _Read) -> None:
    run = one.run
    if not run.fingerprint or run.validity not in Run.USABLE:
        return
    name = one.history or "reported"
    series = extend_series(
        run,
        application=str(run.application or name),
        workload=str(run.workload or name),
        tool=f"{one.tool[:49]} (reported)",
        latency_basis=one.latency_basis,
    )
    follow(run, series)
