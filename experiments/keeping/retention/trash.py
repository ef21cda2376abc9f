"""The trash: what is in it is in no list, history or verdict, and comes back for 30 days.

A run that goes leaves its series' trends, which are searched for changes again without it, and its experiment, whose
verdicts are made again without it, as if it had never counted. Restored, it counts again. Its number is never reused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from experiments.keeping.retention.exemptions import experiment_in_use, in_use
from experiments.models import Experiment, Member, Role, Run, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.running.ending.rejudging import refresh_experiment, refresh_series

KEPT_DAYS = 30
MOST_AT_ONCE = 500


@dataclass(frozen=True)
class Trashed:
    """One row of the trash: a run, or an experiment with its runs."""

    kind: str
    name: str
    key: int
    runs: int
    trashed_at: datetime

    @property
    def removed_at(self) -> datetime:
        """From when on it is removed for good."""
        return self.trashed_at + timedelta(days=KEPT_DAYS)


def trash_runs(member: Member, numbers: Iterable[int]) -> list[Run]:
    """Move the runs to the trash, all or none. Editors may. Conflict names one that is in use."""
    require(member, Role.EDITOR)
    wanted = _checked(numbers)
    with transaction.atomic():
        runs = _found(Run.objects.for_team(member.team), wanted)
        ids = [run.pk for run in runs]
        for why, condition in in_use().items():
            used = Run.objects.filter(condition, pk__in=ids).order_by("number").first()
            if used is not None:
                raise Conflict(f"Run #{used.number} cannot be deleted: it is {why}.", field="runs")
        Run.objects.filter(pk__in=ids).update(trashed_at=database_now())
        audit.record(member, "trash.add", _named(runs), after={"runs": [run.number for run in runs]})
        refresh(member.team, runs)
    return runs


def restore_runs(member: Member, numbers: Iterable[int]) -> list[Run]:
    """Take the runs out of the trash, all or none. Editors may."""
    require(member, Role.EDITOR)
    wanted = _checked(numbers)
    with transaction.atomic():
        runs = _found(in_trash(member.team), wanted)
        gone = next((run for run in runs if run.experiment and run.experiment.trashed_at), None)
        if gone is not None:
            raise Conflict(f"Run #{gone.number} is part of an experiment in the trash; restore that.", field="runs")
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(trashed_at=None)
        audit.record(member, "trash.restore", _named(runs), before={"runs": [run.number for run in runs]})
        refresh(member.team, runs)
    return runs


def trash_experiment(member: Member, experiment_id: int) -> Experiment:
    """Move the experiment and its runs to the trash. Editors may. Conflict says why it cannot go."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        experiment = _experiment(Experiment.objects.for_team(member.team), experiment_id)
        # Runs before the experiment, as everywhere: whoever ends a run locks them in this order.
        runs = list(experiment.runs.kept().select_for_update(of=("self",)).order_by("pk"))
        experiment = _experiment(
            Experiment.objects.for_team(member.team).select_for_update(of=("self",)), experiment_id
        )
        for why, condition in experiment_in_use().items():
            if Experiment.objects.filter(condition, pk=experiment.pk).exists():
                raise Conflict(f"The experiment {experiment.name} cannot be deleted: it is {why}.")
        for why, condition in in_use().items():
            used = experiment.runs.kept().filter(condition).order_by("number").first()
            if used is not None:
                raise Conflict(f"The experiment cannot be deleted: its run #{used.number} is {why}.")
        at = database_now()
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(trashed_at=at)
        Experiment.objects.filter(pk=experiment.pk).update(trashed_at=at)
        after = {"experiment": experiment.pk, "runs": [run.number for run in runs]}
        audit.record(member, "trash.add", f"experiment {experiment.name}", after=after)
        refresh(member.team, runs, experiments=False)
    return experiment


def restore_experiment(member: Member, experiment_id: int) -> Experiment:
    """Take the experiment out of the trash with the runs that went there together with it. Editors may."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        found = Experiment.objects.filter(team=member.team, trashed_at__isnull=False)
        experiment = _experiment(found, experiment_id)
        # Runs before the experiment, as where it went; what is removed for good meanwhile cannot come back.
        gone = experiment.runs.filter(trashed_at=experiment.trashed_at)
        runs = list(gone.select_for_update(of=("self",)).order_by("pk"))
        experiment = _experiment(found.select_for_update(of=("self",)), experiment_id)
        Run.objects.filter(pk__in=[run.pk for run in runs]).update(trashed_at=None)
        Experiment.objects.filter(pk=experiment.pk).update(trashed_at=None)
        before = {"experiment": experiment.pk, "runs": [run.number for run in runs]}
        audit.record(member, "trash.restore", f"experiment {experiment.name}", before=before)
        refresh(member.team, runs)
    return experiment


def in_trash(team: Team) -> QuerySet[Run]:
    """The runs of the team that are in the trash."""
    return Run.objects.filter(team=team, trashed_at__isnull=False).select_related("experiment")


def trash_of(team: Team, *, most: int = MOST_AT_ONCE) -> list[Trashed]:
    """What is in the trash, the latest first; the runs of an experiment that went with it are counted in its row."""
    found = [
        Trashed("experiment", one.name, one.pk, one.gone, one.trashed_at)
        for one in Experiment.objects.filter(team=team, trashed_at__isnull=False)
        .annotate(gone=Count("runs", filter=Q(runs__trashed_at__isnull=False)))
        .order_by("-trashed_at")[:most]
    ]
    alone = (
        in_trash(team).filter(Q(experiment=None) | Q(experiment__trashed_at=None)).order_by("-trashed_at", "-number")
    )
    for run in alone.defer("spec", "findings").select_related("recipe")[:most]:
        if run.trashed_at is not None:
            name = f"#{run.number} {run.recipe or 'imported figures'}"
            found.append(Trashed("run", name, run.number, 1, run.trashed_at))
    return sorted(found, key=lambda one: one.trashed_at, reverse=True)[:most]


def refresh(team: Team, runs: Sequence[Run], *, experiments: bool = True) -> None:
    """Make trends and verdicts again after these runs went or came back."""
    for fingerprint in sorted({run.fingerprint for run in runs if run.fingerprint}):
        refresh_series(team, fingerprint)
    if experiments:
        for experiment_id in sorted({run.experiment_id for run in runs if run.experiment_id is not None}):
            refresh_experiment(experiment_id)


def _checked(numbers: Iterable[int]) -> list[int]:
    wanted = sorted(set(numbers))
    if not 1 <= len(wanted) <= MOST_AT_ONCE:
        raise RequestError(f"Choose between 1 and {MOST_AT_ONCE} runs.", field="runs")
    return wanted


def _found(runs: QuerySet[Run], numbers: Sequence[int]) -> list[Run]:
    found = list(runs.select_for_update(of=("self",)).filter(number__in=numbers).order_by("pk"))
    missing = sorted(set(numbers) - {run.number for run in found})
    if missing:
        raise NotFound(f"There is no run #{missing[0]}.", field="runs")
    return found


def _experiment(found: QuerySet[Experiment], experiment_id: int) -> Experiment:
    experiment = found.filter(pk=experiment_id).first()
    if experiment is None:
        raise NotFound(f"There is no experiment {experiment_id}.", field="experiment")
    return experiment


def _named(runs: Sequence[Run]) -> str:
    return f"run #{runs[0].number}" if len(runs) == 1 else f"{len(runs)} runs"
