"""The one intake: what others measured becomes finished runs, whichever door it came through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from django.db import transaction

from agents.facts.host import HostFacts
from agents.results.spectrum import spectrum_of
from experiments.asking.intake.finished_result import FinishedResult, ReadResult, read_result
from experiments.asking.intake.series import sample_rows
from experiments.judging.alerts.trends import follow
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
from experiments.registry.database_clock import database_now
from experiments.registry.documents.versions import noun
from experiments.registry.errors import RequestError
from experiments.registry.events import ResultsStored, tell
from experiments.registry.hosts.profiles import described_profiles, read_description
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.runs.artifacts import artifact
from experiments.registry.runs.latency_spectra import keep_spectrum
from experiments.registry.runs.series import extend_series
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.quotas import admit_runs

_DOCUMENTS: tuple[type[Document], ...] = (Application, Recipe, Workload)
_TOOL_CHARS = 49


@contextmanager
def placed(place: int, count: int) -> Iterator[None]:
    """A RequestError inside names its field with the place of the result in front, when there are several."""
    try:
        yield
    except RequestError as error:
        where = error.field if count == 1 else f"results.{place}.{error.field}"
        raise RequestError(error.message, field=where) from error


def store_runs(member: Member, results: Sequence[FinishedResult], *, action: str, said: Mapping[str, Any]) -> list[Run]:
    """Store finished runs for results, in the order given; all of them, or none when one is wrong.

    Names refer to the newest versions of the team's documents. The audit trail has one entry: `action`, with what was
    `said` about them. The number of statements does not depend on the number of results, but for those that continue a
    history or have a histogram. RequestError names the field.
    """
    require(member, Role.LAUNCHER)
    thresholds = thresholds_of(member.team)
    documents = {model: _documents(member, model, results) for model in _DOCUMENTS}
    machines: dict[str, HostFacts | None] = {}
    now = database_now()
    read = []
    for place, result in enumerate(results):
        with placed(place, len(results)):
            if result.machine not in machines:
                machines[result.machine] = read_description(result.machine, field="machine")
            read.append(read_result(member, result, thresholds, documents, machines[result.machine], now))
    with transaction.atomic():
        _store(member, read)
        numbers = f"run #{read[0].run.number}"
        if len(read) > 1:
            numbers = f"runs #{read[0].run.number} to #{read[-1].run.number}"
        record(member, action, numbers, after=said)
    return [one.run for one in read]


def _documents(member: Member, model: type[Document], results: Iterable[FinishedResult]) -> dict[str, Any]:
    wanted = {name for result in results if (name := getattr(result, noun(model)).strip())}
    if not wanted:
        return {}
    return {
        found.name: found for found in model.objects.for_team(member.team).newest_versions().filter(name__in=wanted)
    }


def _store(member: Member, read: Sequence[ReadResult]) -> None:
    """Store what was read; whoever comes through another door takes the same locks in the same order."""
    snapshots = _snapshots(member, read)
    learn(member.team, chain.from_iterable(one.own_metrics for one in read), follow={one.result.follow for one in read})
    _note_machines(member, read)
    # Late: it holds up whoever else wants a number of the team.
    first = admit_runs(member.team, len(read), queued=False)
    for number, one in enumerate(read, start=first):
        one.run.number, one.run.config_id = number, snapshots.get(one.digest)
    Run.objects.bulk_create([one.run for one in read])
    SampleSeries.objects.bulk_create(chain.from_iterable(sample_rows(one.run, one.result.series) for one in read))
    Artifact.objects.bulk_create(
        [artifact(one.run, name, text.encode()) for one in read for name, text in filter(None, [one.result.output])]
    )
    for one in read:
        keep_spectrum(one.run, spectrum_of(one.result.report))
        _continue_history(one)
    tell(ResultsStored(member.team_id, [one.run for one in read]))


def _note_machines(member: Member, read: Sequence[ReadResult]) -> None:
    described = [one.machine for one in read if one.machine is not None]
    profiles = described_profiles(member.team, described) if described else {}
    for one in read:
        if one.machine is not None:
            one.run.sut_profile = profiles[one.machine.digest()]


def _snapshots(member: Member, read: Iterable[ReadResult]) -> dict[str, int]:
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


def _continue_history(one: ReadResult) -> None:
    run, history, report = one.run, one.result.history, one.result.report
    if history is None or not run.is_usable:  # it can be looked at, and is no part of any history
        return
    series = extend_series(
        run,
        application=str(run.application or history.title),
        workload=" ".join(filter(None, [str(run.workload or history.url or ""), history.part])) or history.title,
        tool=f"{report.tool[:_TOOL_CHARS]} ({history.came})",
        latency_basis=report.latency_basis,
    )
    follow(run, series)
