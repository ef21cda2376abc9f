"""Trends grow with every run that counts, in the transaction that ends it; what changed in them becomes alerts."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models.fields.json import KeyTransform

from experiments.analysis.changepoints import Window, find_changes
from experiments.judging.alerts.limits import SeriesLimits
from experiments.judging.alerts.matching import reconcile
from experiments.judging.alerts.missing import data_came, note_occasion
from experiments.models import Recipe, Run, Series, Trend
from experiments.registry.metrics.own_metrics import followed_metrics, metric_named
from experiments.registry.runs.nights import boots_of, key_of, nights_of
from experiments.registry.runs.summary import figure

logger = logging.getLogger(__name__)

WATCHED = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "cpu_ms_per_request")
"""Known metrics that are searched for change points: each further one repeats these, with false alarms of its own."""
_VARIATION_CHARS = 200


@dataclass(frozen=True)
class Line:
    """What runs of one series must share to be points of one trend: the recipe, and the parameters chosen for it."""

    recipe: str
    variation: str


@dataclass(frozen=True, order=True)
class Point:
    """A run in a trend, by its place in time; `key` as in `registry.runs.nights`."""

    at_s: float
    number: int
    value: float
    key: int = 0
    experiment_id: int | None = None

    @property
    def stored(self) -> tuple[float, int, float, int]:
        return self.at_s, self.number, self.value, self.key


def line_of(recipe: Recipe | None, parameters: Mapping[str, Any]) -> Line:
    """The recipe's name, and the parameters that are not the defaults of its version.

    A default that changes from one version to the next is a change to be found, so it does not begin another trend.
    """
    if recipe is None:
        return Line("", "")
    declared: Mapping[str, Any] = recipe.body.get("parameters") or {}
    chosen = {name: value for name, value in parameters.items() if (declared.get(name) or {}).get("default") != value}
    text = ", ".join(f"{name}={value}" for name, value in sorted(chosen.items()))
    if len(text) > _VARIATION_CHARS:
        text = f"{text[: _VARIATION_CHARS - 20]}… {sha256(text.encode()).hexdigest()[:16]}"
    return Line(recipe.name, text)


def follow(run: Run, series: Series) -> None:
    """Add a run that has just ended to its trends and look for change points there. Call inside its transaction.

    A run ends even if that cannot be done: it is logged, and `manage.py find_changes` makes up for it.
    """
    if not _counts(run):
        return
    try:
        with transaction.atomic():
            _follow(run, series)
    except Exception:
        logger.exception("run %s is in no trend yet; manage.py find_changes puts it there", run.pk)


def _follow(run: Run, series: Series) -> None:
    line, key = line_of(run.recipe, _parameters(run.spec)), key_of(run, _boot_id(run))
    limits = SeriesLimits.read(series)
    for metric in (*WATCHED, *followed_metrics(series.team_id, run.metrics)):
        point = _point(run, metric, key)
        if point is None:
            continue
        trend, _ = Trend.objects.select_for_update(of=("self",)).get_or_create(
            series=series, recipe=line.recipe, variation=line.variation, metric=metric
        )
        place = _insert(trend, point)
        if trend.due_at is None:
            data_came(trend, point.at_s)
        note_occasion(trend, point.at_s, point.experiment_id)
        look(trend, series, limits, place=place)


def look(
    trend: Trend, series: Series, of_series: SeriesLimits, *, place: int | None = None, quiet: bool = False
) -> None:
    """Find the trend's change points again and store them.

    `place`: where a run was added since the last look, which leaves the points before its own as they were; None = more
    has changed.
    """
    trend.series = series  # as one that was found by its series does not know it
    known = [Window(start, tuple(cuts)) for start, *cuts in trend.windows]
    metric = metric_named(series.team_id, trend.metric)
    limits = of_series.of(metric)
    nights = nights_of(trend.points)
    unchanged = 0 if place is None else int(nights.point_of[place])
    changes = find_changes(nights.value, limits.settings, known=known, unchanged=unchanged)
    trend.windows = [[window.start, *window.cuts] for window in changes.windows]
    trend.save()
    reconcile(trend, metric, nights, changes, mutes_improvements=limits.mutes_improvements, quiet=quiet)


def rebuild(series: Series, *, quiet: bool = True) -> None:
    """Make the trends of a series again from its runs, after runs were deleted, archived or judged anew.

    What people said about alerts stays. `quiet`: nobody is told of what is found, as it is old.
    """
    with transaction.atomic():
        Series.objects.select_for_update(of=("self",)).get(pk=series.pk)
        points, limits = _points_of(series), SeriesLimits.read(series)
        for trend in Trend.objects.select_for_update(of=("self",)).filter(series=series):
            points.setdefault((Line(trend.recipe, trend.variation), trend.metric), [])
        for (line, metric), found in points.items():
            trend, _ = Trend.objects.get_or_create(
                series=series, recipe=line.recipe, variation=line.variation, metric=metric
            )
            _fill(trend, sorted(found))
            look(trend, series, limits, quiet=quiet)


def _fill(trend: Trend, points: Sequence[Point]) -> None:
    trend.points = np.array([point.stored for point in points], Trend.POINT)
    trend.windows, trend.occasions_s, trend.last_experiment_id, trend.due_at = [], [], None, None
    for point in points:
        note_occasion(trend, point.at_s, point.experiment_id)


def _insert(trend: Trend, point: Point) -> int | None:
    """Put the run at its place in time and return it; None when the run was there before, with another figure perhaps.

    One that is late, or an import of an old one, lands in the middle.
    """
    points = trend.points
    others = points[points["number"] != point.number]
    at_s, numbers = others["at_s"], others["number"]
    place = int(np.count_nonzero((at_s < point.at_s) | ((at_s == point.at_s) & (numbers < point.number))))
    trend.points = np.insert(others, place, np.array(point.stored, Trend.POINT))
    return place if len(others) == len(points) else None


def _counts(run: Run) -> bool:
    """The same as `RunQuerySet.counted`, for a run in hand."""
    return run.state == Run.State.FINISHED and run.is_usable and not run.archived


def _parameters(spec: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (spec or {}).get("recipe", {}).get("parameters") or {}


def _point(run: Run, metric: str, key: int) -> Point | None:
    value = figure(run, metric)
    if value is None or run.finished_at is None:
        return None
    return Point(run.finished_at.timestamp(), run.number, value, key, run.experiment_id)


def _boot_id(run: Run) -> str:
    """The boot of the server's host, of a single run that was executed."""
    if run.variant_id is not None or run.origin != Run.Origin.EXECUTED:
        return ""
    return boots_of([run.pk]).get(run.pk, "")


def _points_of(series: Series) -> dict[tuple[Line, str], list[Point]]:
    """The points of all trends of the series, from its runs."""
    runs = (
        Run.objects.for_team(series.team)
        .counted()
        .filter(fingerprint=series.fingerprint)
        .annotate(
            chosen=KeyTransform("parameters", KeyTransform("recipe", "spec")),
            own_rate=KeyTransform("own_rate_rps", KeyTransform("workload", "spec")),
        )
        .only("number", "finished_at", "metrics", "hides_latency", "experiment_id", "variant_id", "recipe_id")
    )
    boots = boots_of(runs.filter(variant=None).order_by())
    watched = (*WATCHED, *followed_metrics(series.team_id))
    recipes: dict[int, Recipe] = {}
    found: dict[tuple[Line, str], list[Point]] = defaultdict(list)
    for run in runs.iterator(chunk_size=1000):
        if run.own_rate is not None:
            continue
        if run.recipe_id is not None and run.recipe_id not in recipes:
            recipes[run.recipe_id] = Recipe.objects.get(pk=run.recipe_id)
        line = line_of(recipes.get(run.recipe_id), run.chosen or {})
        key = key_of(run, boots.get(run.pk, ""))
        for metric in watched:
            point = _point(run, metric, key)
            if point is not None:
                found[line, metric].append(point)
    return found
