"""Data that stopped coming: a trend that used to get a figure regularly, and got none for three times that.

Every watched metric has its own trend. When all of a line stop together that is one alert, about the first of them;
when the runs go on without one figure, that figure is missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from experiments.models import Alert, Run, Trend
from experiments.registry.database_clock import database_now
from experiments.registry.events import AlertConfirmed, tell

OCCASIONS = 21
"""So many of the last occasions are looked at."""
REGULAR_AFTER = 6
TOGETHER_S = 3600.0
"""Runs that are closer than this, or of one experiment, are one occasion: a night's repetitions are one night."""
OVERDUE_AFTER = 3
MOST_AT_ONCE = 200


def note_occasion(trend: Trend, at_s: float, experiment_id: int | None) -> None:
    """Take a run into the trend's occasions and set when the next one is overdue; the caller saves the trend."""
    occasions = trend.occasions_s
    if occasions and at_s <= occasions[-1]:
        return  # an old run that came late
    same = experiment_id is not None and experiment_id == trend.last_experiment_id
    if occasions and (same or at_s - occasions[-1] < TOGETHER_S):
        occasions[-1] = at_s
    else:
        occasions.append(at_s)
        del occasions[:-OCCASIONS]
    trend.last_experiment_id = experiment_id
    interval_s = usual_interval_s(occasions)
    trend.due_at = None if interval_s is None else _moment(at_s + OVERDUE_AFTER * interval_s)


def usual_interval_s(occasions_s: Sequence[float]) -> float | None:
    """The median interval, when at least four of five are between half and twice of it; None = not regular."""
    if len(occasions_s) < REGULAR_AFTER:
        return None
    intervals_s = [later - earlier for earlier, later in pairwise(occasions_s)]
    usual_s = median(intervals_s)
    near = sum(usual_s / 2 <= interval_s <= 2 * usual_s for interval_s in intervals_s)
    return usual_s if near >= 0.8 * len(intervals_s) else None


def raise_missing() -> int:
    """Raise an alert for each trend that is overdue and in no alert of its line; returns how many were raised.

    Reads the overdue trends only, and the lines that they are of.
    """
    raised = 0
    with transaction.atomic():
        overdue = (
            Trend.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("series")
            .filter(due_at__lt=Now())
            .order_by("due_at", "pk")[:MOST_AT_ONCE]
        )
        for trend in overdue:
            last = _last_run(trend)
            if last is not None and not last.is_demo and _is_missed(trend, last):
                alert = Alert.objects.create(
                    team_id=trend.series.team_id,
                    trend=trend,
                    kind=Alert.Kind.MISSING,
                    state=Alert.State.CONFIRMED,
                    worse=True,
                    run_before=last,
                    before_at_s=trend.occasions_s[-1],
                    interval_s=usual_interval_s(trend.occasions_s),
                    confirmed_at=database_now(),
                )
                tell(AlertConfirmed(alert))
                raised += 1
            trend.due_at = None  # until the next run
            trend.save(update_fields=["due_at"])
    return raised


def data_came(trend: Trend, at_s: float) -> None:
    """The trend has a new run: an alert that its data are missing is over, and gone when nobody has looked at it.

    The alert stood for the whole line: what of it does not come back now is overdue in its own time.
    """
    missing = Alert.objects.filter(trend=trend, kind=Alert.Kind.MISSING, stands=True)
    if not missing.exists():
        return
    missing.filter(triage=Alert.Triage.UNTRIAGED, owner=None, note="").delete()
    missing.update(stands=False)
    for other in _line_of(trend).select_for_update(of=("self",)).filter(due_at=None):
        if (interval_s := usual_interval_s(other.occasions_s)) is not None:
            other.due_at = _moment(at_s + OVERDUE_AFTER * interval_s)
            other.save(update_fields=["due_at"])


def _line_of(trend: Trend) -> QuerySet[Trend]:
    """The trends of the other metrics of the same runs."""
    same = Trend.objects.filter(series_id=trend.series_id, recipe=trend.recipe, variation=trend.variation)
    return same.exclude(pk=trend.pk).order_by("pk")


def _is_missed(trend: Trend, last: Run) -> bool:
    """Whether nobody has been told that this trend gets no data, and it is not because they come elsewhere."""
    until_s = trend.occasions_s[-1]
    told = Alert.objects.filter(
        trend__in=_line_of(trend), kind=Alert.Kind.MISSING, stands=True, before_at_s__gte=until_s - TOGETHER_S
    )
    if told.exists():
        return False
    return runs_go_on(trend) or not _goes_on_elsewhere(last)


def runs_go_on(trend: Trend) -> bool:
    """Whether the same runs give other figures, later than the last one of this metric."""
    until_s = trend.occasions_s[-1] if trend.occasions_s else 0.0
    others = _line_of(trend).values_list("occasions_s", flat=True)
    return any(occasions_s and occasions_s[-1] > until_s for occasions_s in others)


def _last_run(trend: Trend) -> Run | None:
    if not trend.length:
        return None
    found = Run.objects.filter(team_id=trend.series.team_id, number=int(trend.points[-1]["number"]))
    run: Run | None = found.select_related("workload", "application", "recipe").first()
    return run


def _goes_on_elsewhere(last: Run) -> bool:
    """Whether runs with the same names came later: in another series, of a new version or another machine."""
    names = {
        f"{part}__name": document.name
        for part in ("workload", "application", "recipe")
        if (document := getattr(last, part)) is not None
    }
    if not names:
        return False
    later = Run.objects.filter(team_id=last.team_id, finished_at__gt=last.finished_at, **names)
    return later.counted().exists()


def _moment(at_s: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=at_s)
