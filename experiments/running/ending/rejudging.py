"""Judging stored runs again, with the checks of today and the team's thresholds of today.

The samples, the facts of the hosts and the load report are stored with a run, so its validity can be computed again.
What was not read at the time stays unknown: those checks are skipped. Imported and made-up runs keep no report and stay
as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import transaction
from pydantic import ValidationError

from agents.events import from_json
from agents.record import Record
from agents.spec import RunSpec
from experiments.analysis.findings import RunValidity
from experiments.judging.alerts.trends import rebuild
from experiments.judging.evidence.judgement import findings_json
from experiments.judging.evidence.observed import Channels, validity_of
from experiments.judging.evidence.thresholds import thresholds_of
from experiments.judging.verdicts.judging import store_verdicts
from experiments.models import Experiment, Run, SampleSeries, Series, Team
from experiments.running.ending.conclusion import join_history

_NOT_FOLDED = ("samples", "logged")


@dataclass(frozen=True)
class Change:
    """A run whose validity is another one now. `reason` is the first sentence behind the new one."""

    number: int
    before: str
    after: str
    reason: str


@dataclass
class Rejudged:
    """What came of it. `kept` counts the runs that could not be judged again, by the reason."""

    judged: int = 0
    changes: list[Change] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)


class _Unknown(Exception):
    """Why a run cannot be judged again."""


def rejudge(team: Team, *, dry_run: bool = False) -> Rejudged:
    """Judge every successful run of the team again; then its series and experiments. `dry_run` stores nothing."""
    found = Rejudged()
    fingerprints: set[str] = set()
    experiments: set[int] = set()
    for pk in _runs(team):
        with transaction.atomic():
            run = (
                Run.objects.select_for_update(of=("self",)).select_related("team", "workload", "application").get(pk=pk)
            )
            try:
                validity = _judged(run)
            except _Unknown as why:
                found.kept[str(why)] += 1
                continue
            found.judged += 1
            before = run.validity
            if before != validity.state:
                reason = validity.reasons[0] if validity.reasons else "Nothing speaks against it."
                found.changes.append(Change(run.number, before, validity.state, reason))
            elif run.hides_latency != validity.hides_latency:
                now = "hidden" if validity.hides_latency else "shown"
                found.changes.append(Change(run.number, before, before, f"Its latency is {now} now."))
            if dry_run:
                continue
            moved = before != validity.state or run.hides_latency != validity.hides_latency
            run.validity, run.findings, run.hides_latency = (
                validity.state,
                findings_json(validity),
                validity.hides_latency,
            )
            run.save(update_fields=["validity", "findings", "hides_latency"])
            if moved:
                fingerprints.add(run.fingerprint)
                if run.experiment_id is not None:
                    experiments.add(run.experiment_id)
    for fingerprint in fingerprints - {""}:
        refresh_series(team, fingerprint)
    for experiment_id in experiments:
        refresh_experiment(experiment_id)
    return found


def _runs(team: Team) -> Iterator[int]:
    runs = Run.objects.for_team(team).filter(state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED)
    yield from list(runs.order_by("number").values_list("pk", flat=True))


def _judged(run: Run) -> RunValidity:
    if run.origin == Run.Origin.IMPORTED:
        raise _Unknown("imported: the figures of its report are not stored apart")
    record = Record.fold(map(from_json, _payloads(run)))
    measured = next((report for report in record.reports.values() if report.measured), None)
    if measured is None or not run.spec:
        raise _Unknown("made up or incomplete: no load report is stored")
    try:
        spec = RunSpec.model_validate(run.spec)
    except ValidationError as error:
        raise _Unknown("its specification is of an earlier version of BenchHub") from error
    if not spec.hosts.keys() <= record.facts.keys():
        raise _Unknown("made up or incomplete: the facts of its hosts are not stored")
    series = {(line.role, line.channel): line for line in SampleSeries.objects.filter(run=run)}
    return validity_of(spec, record, measured, Channels(series), thresholds_of(run.team))


def _payloads(run: Run) -> Iterator[dict[str, object]]:
    events = run.events.exclude(kind__in=_NOT_FOLDED).order_by("seq")
    yield from events.values_list("payload", flat=True)


def refresh_series(team: Team, fingerprint: str) -> None:
    """The newest run that counts leads the series; its trends are searched for change points again."""
    newest = Run.objects.for_team(team).counted().filter(fingerprint=fingerprint).order_by("-number").first()
    series = Series.objects.for_team(team).filter(fingerprint=fingerprint).first()
    with transaction.atomic():
        if series is None:
            if newest is None or newest.spec is None:
                return
            try:
                spec = RunSpec.model_validate(newest.spec)
            except ValidationError:  # of an earlier version of BenchHub: it leads no new series
                return
            facts = newest.events.filter(kind="facts_collected", payload__role="driver").order_by("seq").last()
            join_history(newest, spec, facts.payload.get("tool_version", "") if facts else "")
            series = Series.objects.for_team(team).filter(fingerprint=fingerprint).first()
            if series is None:
                return
        elif series.last_run != newest:
            series.last_run = newest
            series.save(update_fields=["last_run"])
        rebuild(series)


def refresh_experiment(experiment_id: int) -> None:
    """The verdicts again; an experiment that goes on is judged when its next run ends."""
    with transaction.atomic():
        experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment_id)
        if experiment.state in (Experiment.State.FINISHED, Experiment.State.CANCELLED):
            compared = store_verdicts(experiment, spent=True)
            # Of a metric that no run has any more, nothing can be said.
            experiment.verdicts.exclude(metric__in={one.metric for one in compared}).delete()
