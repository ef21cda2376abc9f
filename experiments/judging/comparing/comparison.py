"""Runs side by side: figures, configurations, hardware, and what else differs. Pages, API and gate read here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agents.running.explained_differences import explained_by
from agents.running.system import MEMBERS
from agents.spec import RunSpec
from experiments.judging.evidence.roles import member_facts
from experiments.models import Run, Team, TuningTrial
from experiments.registry.documents.configuration import PARAMETERS, ConfigurationDiff, diff
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.snapshots import content_digest
from experiments.registry.runs.summary import figure

MAX_COMPARED = 10


@dataclass(frozen=True)
class MetricRow:
    """One metric over the compared runs, the baseline first.

    `changes_pct` against it: None for itself, and where it is 0 or below, as nothing is a part of that.
    """

    metric: MetricSpec
    values: tuple[float | None, ...]
    changes_pct: tuple[float | None, ...]


@dataclass(frozen=True)
class Confounder:
    """Something that differs between the runs apart from the recipe under test."""

    what: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; the first is the baseline."""

    runs: tuple[Run, ...]
    comparable: bool
    confounders: tuple[Confounder, ...]
    rows: tuple[MetricRow, ...]
    configuration: ConfigurationDiff
    hardware: ConfigurationDiff


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare finished runs of one team. RequestError when there are not 2 to 10 of them.

    The runs need `config`, `sut_profile` and the names loaded (`comparable_runs`).
    """
    if not 2 <= len(runs) <= MAX_COMPARED:
        raise RequestError(f"Choose between 2 and {MAX_COMPARED} runs to compare.", field="runs")
    of_members = _hardware_of_members(runs)
    facts = [(run, run.sut_profile.facts if run.sut_profile else {}) for run in runs]
    confounders = _confounders(runs, of_members)
    metrics = metrics_of(runs[0].team_id, (name for run in runs for name in run.metrics))
    return Comparison(
        runs=tuple(runs),
        comparable=not confounders,
        confounders=confounders,
        rows=tuple(row for metric in metrics.values() if (row := _row(metric, runs)) is not None),
        configuration=configuration_diff(runs),
        hardware=diff([{**own, **of_members[run.pk]} for run, own in facts], asked=lambda _path: False),
    )


def comparable_runs(team: Team, numbers: Sequence[int]) -> list[Run]:
    """The team's runs with these numbers in the order asked for; RequestError names one that does not exist."""
    found = {
        run.number: run
        for run in Run.objects.for_team(team)
        .filter(number__in=numbers)
        .select_related("config", "sut_profile", "recipe", "workload", "application", "sut", "drivers", "variant")
        .prefetch_related("drivers__hosts")
    }
    missing = [number for number in numbers if number not in found]
    if missing:
        raise RequestError(f"There is no run #{missing[0]}.", field="runs")
    return [found[number] for number in dict.fromkeys(numbers)]


def configuration_diff(runs: Sequence[Run]) -> ConfigurationDiff:
    """What differs in the effective configurations; asked = explained by the recipes' differing steps, or reported."""
    explained = explained_by([RunSpec.model_validate(run.spec) for run in runs if run.spec])
    return diff(
        [run.config.values if run.config else {} for run in runs],
        asked=lambda path: path.startswith(PARAMETERS) or explained(path),
    )


def _row(metric: MetricSpec, runs: Sequence[Run]) -> MetricRow | None:
    values = tuple(figure(run, metric.name) for run in runs)
    if all(value is None for value in values):
        return None
    base = values[0]
    changes = tuple(
        None if index == 0 or value is None or base is None or base <= 0 else (value / base - 1) * 100
        for index, value in enumerate(values)
    )
    return MetricRow(metric, values, changes)


def _hardware_of_members(runs: Sequence[Run]) -> dict[int, dict[str, str]]:
    """Run -> what the hosts of a system's further members are, by role: `members.database.cpu.model`."""
    return {
        run.pk: {
            f"{MEMBERS}{role}.{path}": value
            for role, facts in member_facts(run).items()
            for path, value in facts.items()
        }
        for run in runs
    }


def _confounders(runs: Sequence[Run], of_members: Mapping[int, Mapping[str, str]]) -> tuple[Confounder, ...]:
    trials = TuningTrial.objects.filter(run__in=[run.pk for run in runs], purpose__in=TuningTrial.SELECTED)
    selected = set(trials.values_list("run", flat=True))
    checks: dict[str, Callable[[Run], str]] = {
        "workload": lambda run: str(run.workload or "imported"),
        "load tool": lambda run: str(run.spec["workload"]["driver"]["kind"]) if run.spec else "imported",
        "application": lambda run: str(run.application or "imported"),
        "SUT": lambda run: str(run.sut or "unknown"),
        "SUT hardware": lambda run: str(run.sut_profile) if run.sut_profile else "unknown",
        "driver hosts": lambda run: str(run.drivers or "unknown"),
        "validity": lambda run: str(run.validity or "not judged"),
        "profiling": lambda run: "profiled" if run.profiled else "not profiled",
        "selection": lambda run: "of a tuning search: selected, optimistic" if run.pk in selected else "none",
    }
    for role in sorted({role for run in runs for role in (run.drivers.member_ids if run.drivers else ())}):
        checks[f"host of {role}"] = partial(_host_of, role)
        checks[f"hardware of {role}"] = partial(_hardware_of, role, of_members)
    found = []
    for what, read in checks.items():
        values = tuple(read(run) for run in runs)
        if len(set(values)) > 1:
            found.append(Confounder(what, values))
    return tuple(found)


def _host_of(role: str, run: Run) -> str:
    host = run.drivers.members.get(role) if run.drivers else None
    return host.name if host else "none"


def _hardware_of(role: str, of_members: Mapping[int, Mapping[str, str]], run: Run) -> str:
    prefix = f"{MEMBERS}{role}."
    own = {path: value for path, value in of_members[run.pk].items() if path.startswith(prefix)}
    return content_digest(own)[:12] if own else "unknown"
