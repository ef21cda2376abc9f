"""What can be shared, by its names, and how it becomes a sheet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from experiments.asking.bisections.live import BISECTIONS
from experiments.asking.searches.live import SEARCHES
from experiments.judging.comparing.comparison import MAX_COMPARED, comparable_runs
from experiments.models import Experiment, Run, Series, ShareLink, Team
from experiments.registry.errors import NotFound, RequestError
from experiments.telling.sharing.bisection_sheet import bisection_sheet
from experiments.telling.sharing.comparison_sheet import comparison_sheet
from experiments.telling.sharing.experiment_sheet import experiment_sheet
from experiments.telling.sharing.privacy import without_private
from experiments.telling.sharing.run_sheet import run_sheet
from experiments.telling.sharing.scaling_sheet import scaling_sheet
from experiments.telling.sharing.search_sheet import search_sheet
from experiments.telling.sharing.sheet import Sheet
from experiments.telling.sharing.trend_sheet import trend_sheet


@dataclass(frozen=True)
class Subject:
    """One thing of a team. `runs` are numbers: one of a run, the baseline first of a comparison.

    A trend has a series, a metric, and perhaps one recipe and a stretch of time. `experiment_id` is of a report and of
    a scaling measurement, `inquiry_id` of a search and of a bisection.
    """

    kind: ShareLink.Kind
    runs: tuple[int, ...] = ()
    experiment_id: int | None = None
    inquiry_id: int | None = None
    series_id: int | None = None
    metric: str = "throughput_rps"
    recipe: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Frozen:
    """The sheet of a subject; `run_ids` are the runs that it speaks of, none for a trend: it is about a series."""

    kind: ShareLink.Kind
    subject: str
    sheet: Sheet
    run_ids: tuple[int, ...]


def freeze(team: Team, subject: Subject) -> Frozen:
    """The subject as it is now, without what a stranger must not read. NotFound, or RequestError names the field."""
    frozen = _FREEZERS[subject.kind](team, subject)
    return Frozen(frozen.kind, frozen.subject[:200], without_private(team, frozen.sheet), frozen.run_ids)


def _run(team: Team, subject: Subject) -> Frozen:
    if len(subject.runs) != 1:
        raise RequestError("Name one run; several are a comparison.", field="runs")
    run = (
        Run.objects.for_team(team)
        .select_related(
            *("recipe", "workload", "application", "sut", "drivers", "variant", "experiment", "sut_profile", "config")
        )
        .filter(number=subject.runs[0])
        .first()
    )
    if run is None:
        raise NotFound(f"There is no run #{subject.runs[0]}.", field="runs")
    return Frozen(subject.kind, f"run #{run.number}", run_sheet(run), (run.pk,))


def _comparison(team: Team, subject: Subject) -> Frozen:
    if not 2 <= len(set(subject.runs)) <= MAX_COMPARED:
        raise RequestError(f"Choose between 2 and {MAX_COMPARED} runs to compare.", field="runs")
    try:
        runs = comparable_runs(team, subject.runs)
    except RequestError as error:
        raise NotFound(error.message, field="runs") from error
    names = ", ".join(f"#{run.number}" for run in runs)
    return Frozen(subject.kind, f"comparison of {names}", comparison_sheet(runs), tuple(run.pk for run in runs))


def _experiment(team: Team, subject: Subject) -> Frozen:
    experiment = _experiment_of(team, subject)
    return Frozen(subject.kind, f"experiment {experiment.name}", experiment_sheet(experiment), _runs_of(experiment.pk))


def _scaling(team: Team, subject: Subject) -> Frozen:
    experiment = _experiment_of(team, subject)
    return Frozen(subject.kind, f"scaling of {experiment.name}", scaling_sheet(experiment), _runs_of(experiment.pk))


def _experiment_of(team: Team, subject: Subject) -> Experiment:
    found = Experiment.objects.for_team(team).select_related("workload", "created_by", "team")
    experiment: Experiment | None = found.filter(pk=subject.experiment_id).first()
    if experiment is None:
        raise NotFound(f"There is no experiment {subject.experiment_id}.", field="experiment")
    return experiment


def _runs_of(*experiment_ids: int) -> tuple[int, ...]:
    found = Run.objects.filter(experiment_id__in=experiment_ids).kept()
    return tuple(found.order_by("pk").values_list("pk", flat=True))


def _search(team: Team, subject: Subject) -> Frozen:
    search = SEARCHES.find(team, subject.inquiry_id or 0)
    run_ids = tuple(search.trials.values_list("run_id", flat=True))
    return Frozen(subject.kind, f"rate search {search.name}", search_sheet(search), run_ids)


def _bisection(team: Team, subject: Subject) -> Frozen:
    bisection = BISECTIONS.find(team, subject.inquiry_id or 0)
    run_ids = _runs_of(*bisection.steps.values_list("experiment_id", flat=True))
    return Frozen(subject.kind, f"bisection {bisection.name}", bisection_sheet(bisection), run_ids)


def _trend(team: Team, subject: Subject) -> Frozen:
    found = Series.objects.for_team(team).select_related("team", "sut_profile")
    series = found.filter(pk=subject.series_id).first()
    if series is None:
        raise NotFound("There is no such series.", field="series")
    sheet = trend_sheet(series, subject.metric, recipe=subject.recipe, since=subject.since, until=subject.until)
    return Frozen(subject.kind, f"trend of {subject.metric}, {series}", sheet, ())


_FREEZERS = {
    ShareLink.Kind.RUN: _run,
    ShareLink.Kind.COMPARISON: _comparison,
    ShareLink.Kind.EXPERIMENT: _experiment,
    ShareLink.Kind.TREND: _trend,
    ShareLink.Kind.SCALING: _scaling,
    ShareLink.Kind.SEARCH: _search,
    ShareLink.Kind.BISECTION: _bisection,
}
