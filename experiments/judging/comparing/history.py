"""The read side of series: their points, and the runs of an experiment. Pages, API and gate all read here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean, stdev
from typing import Any

import numpy as np
from django.db import connections, router
from django.db.models import F, FloatField, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Cast

from experiments.models import Experiment, Run, SampleSeries, Series, Team, Trend
from experiments.models.runs import RunQuerySet
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.nights import nights_of

MAX_POINTS = 2000
SHOWN_POINTS = 600
"""In a chart of a whole series: about one for each pixel of its width."""
_POINT = ("number", "finished_at", "value", "recipe__name", "validity", "labels", "experiment_id", "variant__name")


@dataclass(frozen=True)
class Point:
    """One night in a series: an experiment's variant, or the single runs of an hour; `number` is its first run.

    `value` is the mean of its `runs`, `spread` their standard deviation, None for one run. It is suspect when one is.
    `variant` is the name of the experiment's; `variation`, the parameters that are not the defaults, is known of points
    that are in a trend.
    """

    number: int
    at: datetime
    value: float
    recipe: str
    validity: str
    labels: Mapping[str, str]
    experiment_id: int | None
    runs: tuple[int, ...] = ()
    spread: float | None = None
    variant: str = ""
    variation: str = ""

    def __post_init__(self) -> None:
        if not self.runs:
            object.__setattr__(self, "runs", (self.number,))


@dataclass(frozen=True)
class MetricHistory:
    """The history of one metric: points in the order of their numbers.

    `truncated`: older points were left out. `thinned`: points between these were left out.
    """

    metric: MetricSpec
    points: tuple[Point, ...]
    truncated: bool
    thinned: bool = False


def series_of(team: Team) -> list[Series]:
    """The team's series, the one with the newest run first."""
    found = Series.objects.for_team(team).select_related("sut_profile", "last_run")
    return list(found.order_by(F("last_run_id").desc(nulls_last=True), "pk"))


def metric_history(
    team: Team,
    fingerprint: str,
    metric: str,
    *,
    recipe: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = MAX_POINTS,
) -> MetricHistory:
    """The points of the newest `limit` counted runs of a series, oldest first, each with all of its runs.

    Latency that saturation hides is left out.
    """
    spec = metric_named(team.pk, metric)
    runs = _history_runs(team, fingerprint, metric, recipe, since, until)
    found = _points(runs.order_by("-number")[: limit + 1])
    shown = _nights(team, fingerprint, metric, found[:limit][::-1])
    return MetricHistory(spec, shown, truncated=len(found) > limit)


def thinned_history(
    team: Team,
    fingerprint: str,
    metric: str,
    *,
    recipe: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    keep: Iterable[int] = (),
    most: int = SHOWN_POINTS,
) -> MetricHistory:
    """The history for a chart: of more than `most` runs the points of that many, evenly spread, oldest first.

    The newest run and those with the numbers in `keep` are always there. What is read from the database depends on
    `most`, not on the length of the series: one run is looked up in each stretch of run numbers.
    """
    spec = metric_named(team.pk, metric)
    runs = _history_runs(team, fingerprint, metric, recipe, since, until)
    first, last, beyond = _ends(team, runs.values("number"), most)
    if first is None or last is None or beyond is None:
        shown = _nights(team, fingerprint, metric, _points(runs.order_by("number")))
        return MetricHistory(spec, shown, truncated=False)
    step = -(-(last - first + 1) // most)
    start = RawSQL("stretch.first", ())
    one = runs.filter(number__gte=start, number__lt=start + step).order_by("number").values_list(*_POINT)[:1]
    kept = runs.filter(number__in=[last, *keep]).values_list(*_POINT)
    found = {point.number: point for point in _for_each_stretch((first, last, step), one, kept)}
    shown = _nights(team, fingerprint, metric, [found[number] for number in sorted(found)])
    return MetricHistory(spec, shown, truncated=False, thinned=True)


def _nights(team: Team, fingerprint: str, metric: str, runs: Sequence[Point]) -> tuple[Point, ...]:
    """The runs as the points of the history that they are in, each with all of its runs; two queries at most."""
    if len(runs) < 2:
        return tuple(runs)
    together, variations = _together(team, fingerprint, metric, [run.number for run in runs])
    runs = [replace(run, variation=variations[run.number]) if variations.get(run.number) else run for run in runs]
    if not together:
        return tuple(runs)
    members = _history_runs(team, fingerprint, metric, "", None, None)
    wanted = {number for numbers in together.values() for number in numbers}
    rows = members.filter(number__in=wanted).values_list("number", "value", "validity", "finished_at")
    known = {number: (value, validity, at) for number, value, validity, at in rows}
    found: dict[int, Point] = {}
    for run in runs:
        numbers = [number for number in together.get(run.number, ()) if number in known]
        if len(numbers) < 2:
            found.setdefault(run.number, run)
        elif numbers[0] not in found:
            values = [known[number][0] for number in numbers]
            suspect = any(known[number][1] == Run.Validity.SUSPECT for number in numbers)
            found[numbers[0]] = replace(
                run,
                number=numbers[0],
                at=known[numbers[0]][2],
                value=fmean(values),
                validity=Run.Validity.SUSPECT if suspect else run.validity,
                runs=tuple(numbers),
                spread=stdev(values),
            )
    return tuple(found[number] for number in sorted(found))


def _together(
    team: Team, fingerprint: str, metric: str, numbers: Sequence[int]
) -> tuple[dict[int, tuple[int, ...]], dict[int, str]]:
    """For each run that is one point with others, all runs of the point; and the parameters that a run's trend has.

    Both by the trends of the metric. A figure that is not searched for change points goes by the throughput, which
    nearly every run has.
    """
    trends = Trend.objects.filter(
        series__team=team, series__fingerprint=fingerprint, metric__in={metric, "throughput_rps"}
    )
    found: dict[int, tuple[int, ...]] = {}
    variations: dict[int, str] = {}
    rows = trends.values_list("metric", "variation", "packed")
    for name, variation, packed in sorted(rows, key=lambda row: row[0] == metric):
        points = np.frombuffer(packed, Trend.POINT)
        nights, all_numbers = nights_of(points), points["number"]
        if name == metric:
            found = {number: runs for number, runs in found.items() if number not in set(all_numbers.tolist())}
        among = np.isin(all_numbers, numbers)
        if variation:
            variations |= dict.fromkeys(all_numbers[among].tolist(), variation)
        asked = np.unique(nights.point_of[among])
        several = asked[nights.count[asked] > 1]
        order = np.argsort(nights.point_of, kind="stable")
        ends = np.cumsum(nights.count)
        for night in several.tolist():
            runs = tuple(all_numbers[order[ends[night] - nights.count[night] : ends[night]]].tolist())
            found |= dict.fromkeys(runs, runs)
    return found, variations


def _ends(team: Team, numbers: QuerySet[Any, Any], most: int) -> tuple[int | None, int | None, int | None]:
    """The first and the last number, and one that only a series of more than `most` runs has; one query."""
    newest_first = numbers.order_by("-number")
    looked_up = (numbers.order_by("number")[:1], newest_first[:1], newest_first[most : most + 1])
    row = Team.objects.filter(pk=team.pk).values_list(*(Subquery(query) for query in looked_up))[0]
    return row[0], row[1], row[2]


def _for_each_stretch(
    series: tuple[int, int, int], one: QuerySet[Any, Any], kept: QuerySet[Any, Any]
) -> Iterator[Point]:
    """What `one` finds for each stretch of (first, last, step), which it knows as stretch.first; and the `kept`.

    The ORM has no LATERAL: it would read the whole series, which takes 200 ms more at 3,400 runs and grows with them.
    """
    of_one, parameters = one.query.sql_with_params()
    of_kept, more = kept.query.sql_with_params()
    stretches = "generate_series(%s::int, %s::int, %s::int) AS stretch(first)"
    sql = f"SELECT one.* FROM {stretches} CROSS JOIN LATERAL ({of_one}) AS one UNION ALL {of_kept}"  # noqa: S608
    with connections[router.db_for_read(Run)].cursor() as cursor:
        cursor.execute(sql, (*series, *parameters, *more))
        for number, at, value, recipe, validity, labels, experiment_id, variant in cursor.fetchall():
            yield Point(
                number, at, value, recipe or "", validity, json.loads(labels), experiment_id, variant=variant or ""
            )


def _history_runs(
    team: Team, fingerprint: str, metric: str, recipe: str, since: datetime | None, until: datetime | None
) -> RunQuerySet:
    """The counted runs of a series that have the figure, as `value`; not sorted."""
    runs = Run.objects.for_team(team).counted().filter(fingerprint=fingerprint)
    if "\0" in recipe:
        raise RequestError("No recipe has a NUL character in its name.", field="recipe")
    if recipe:
        runs = runs.filter(recipe__name=recipe)
    if since:
        runs = runs.filter(finished_at__gte=since)
    if until:
        runs = runs.filter(finished_at__lt=until)
    if metric.startswith("latency_"):
        runs = runs.filter(hides_latency=False)
    found: RunQuerySet = runs.annotate(value=Cast(KeyTransform(metric, "metrics"), FloatField()))
    return found.filter(value__isnull=False)


def _points(runs: RunQuerySet) -> list[Point]:
    rows = runs.values_list(*_POINT)
    return [
        Point(number, at, value, recipe_name or "", validity, labels, experiment_id, variant=variant or "")
        for number, at, value, recipe_name, validity, labels, experiment_id, variant in rows
    ]


def samples_of(run: Run, channels: Sequence[str] = ()) -> QuerySet[SampleSeries]:
    """In-run series of the run by role and channel, all or the named channels. Each row has all of its points."""
    series = run.samples.order_by("role", "channel")
    return series.filter(channel__in=channels) if channels else series


def experiment_runs(experiment: Experiment) -> list[Run]:
    """The experiment's runs in order, with names, without wide columns; their profiled twins are not among them."""
    return list(experiment.runs.kept().plain().with_names().order_by("number"))


def profiled_runs(experiment: Experiment) -> list[Run]:
    """The profiled twins of the experiment's runs in order, with names, without wide columns."""
    return list(experiment.runs.kept().filter(profiled=True).with_names().order_by("number"))
