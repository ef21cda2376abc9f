"""What a team's retention never touches, and what nobody may delete while it is in use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q

from experiments.models import (
    Host,
    PinnedBaseline,
    Run,
    Schedule,
    SearchTrial,
    ShareLink,
    StoredVerdict,
    Team,
    TuningTrial,
)
from experiments.models.experiments import OPEN, UNDER_WAY
from experiments.models.runs import RunQuerySet
from experiments.registry.database_clock import database_now


def in_use() -> dict[str, Q]:
    """Why a run cannot be deleted by anybody, in words that follow "it is": conditions on runs."""
    of_run = OuterRef("pk")
    return {
        "not finished": ~Q(state=Run.State.FINISHED),
        "a pinned baseline": Q(Exists(PinnedBaseline.objects.filter(run=of_run))),
        "a trial of a capacity search": Q(Exists(SearchTrial.objects.filter(run=of_run))),
        "a trial of a tuning search": Q(Exists(TuningTrial.objects.filter(run=of_run))),
        "what a schedule repeats": Q(Exists(Schedule.objects.filter(run=of_run))),
        "needed to put a host back": Q(Exists(Host.objects.filter(Q(dirty_run=of_run) | Q(leased_by=of_run)))),
    }


def experiment_in_use() -> dict[str, Q]:
    """Why an experiment cannot be deleted by anybody: conditions on experiments."""
    return {
        "under way": Q(state__in=UNDER_WAY),
        "a step of a bisection": Q(bisection_step__isnull=False),
        "what a schedule repeats": Q(Exists(Schedule.objects.filter(experiment=OuterRef("pk")))),
    }


def exemptions(team: Team) -> Mapping[str, Q]:
    """Why retention leaves a run alone: conditions on the team's runs, by the words that pages use."""
    shared: set[int] = set()
    for run_ids in ShareLink.objects.for_team(team).live().exclude(run_ids=[]).values_list("run_ids", flat=True):
        shared.update(run_ids)
    verdict = StoredVerdict.objects.filter(experiment=OuterRef("experiment"))
    return {
        **in_use(),
        "tagged": ~Q(tags=[]),
        "archived": Q(archived=True),
        "shared": Q(pk__in=shared),
        "part of an experiment with a verdict": Q(Exists(verdict)),
        "part of an experiment that is not over": Q(experiment__state__in=OPEN),
        "part of a bisection": Q(experiment__bisection_step__isnull=False),
    }


def past_retention(team: Team, days: int) -> RunQuerySet:
    """The team's finished runs that ended more than `days` days ago, exempt ones too."""
    before = database_now() - timedelta(days=days)
    runs: RunQuerySet = Run.objects.for_team(team).filter(finished_at__lt=before)
    return runs


def without_exempt(team: Team, runs: RunQuerySet) -> RunQuerySet:
    """Those of the runs that retention may take."""
    for condition in exemptions(team).values():
        runs = runs.filter(~condition)
    return runs
