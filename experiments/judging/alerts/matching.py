"""Which change point is which: what a search finds now, matched with the alerts that are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from django.utils import timezone

from experiments.analysis.changepoints import Changes
from experiments.analysis.changepoints_jumps import Jump
from experiments.judging.alerts.causes import causes_json
from experiments.models import Alert, Run, Trend
from experiments.registry.events import AlertConfirmed, tell
from experiments.registry.metrics.vocabulary import MetricSpec

MAY_MOVE = 3
"""Points by which a change point may move and stay the same one: less than two confirmed ones are apart."""


def reconcile(trend: Trend, team_id: int, metric: MetricSpec, changes: Changes, *, quiet: bool = False) -> None:
    """Make the trend's alerts say what was found.

    A change point is the same as a stored one when it changes in the same direction and lies between that one's run
    before and run after, or at most `MAY_MOVE` points outside. It keeps what a person said about it. A stored one that
    is found no longer goes, unless a person has said something: then it stays, marked, and is never opened again.
    """
    stored = list(Alert.objects.filter(trend=trend, kind=Alert.Kind.CHANGE).select_related("run_before", "run_after"))
    jumps = [(jump, Alert.State.CONFIRMED) for jump in changes.jumps]
    if changes.suspected is not None:
        jumps.append((changes.suspected, Alert.State.SUSPECTED))
    matched = _match(trend, stored, [jump for jump, _ in jumps])
    runs = _runs(trend, team_id, [jump for jump, _ in jumps], stored)
    for place, (jump, state) in enumerate(jumps):
        alert = matched.get(place) or Alert(team_id=team_id, trend=trend, kind=Alert.Kind.CHANGE)
        ends = (alert.run_before_id, alert.run_after_id)
        if _set(alert, _found(trend, metric, jump, state, runs)):
            if ends != (alert.run_before_id, alert.run_after_id):
                alert.causes = causes_json(alert.run_before_id, alert.run_after_id)
            confirmed = state == Alert.State.CONFIRMED and alert.confirmed_at is None
            if confirmed:
                alert.confirmed_at = timezone.now()
            if quiet and alert.told_at is None:
                alert.told_at = timezone.now()
            alert.save()
            if confirmed:
                tell(AlertConfirmed(alert))
    kept = {alert.pk for alert in matched.values()}
    for alert in stored:
        if alert.pk in kept:
            continue
        if alert.triage == Alert.Triage.UNTRIAGED and alert.owner_id is None and not alert.note:
            alert.delete()
        elif alert.stands:
            alert.stands = False
            alert.save(update_fields=["stands"])


def _match(trend: Trend, stored: Sequence[Alert], jumps: Sequence[Jump]) -> dict[int, Alert]:
    """Alerts by the place of their jump in `jumps`; the nearest pairs first, and those that a person has looked at."""
    pairs, at_s = [], trend.points["at_s"]
    for alert in stored:
        first = int(np.searchsorted(at_s, alert.before_at_s, side="right"))
        last = max(int(np.searchsorted(at_s, alert.after_at_s or alert.before_at_s)), first)
        for place, jump in enumerate(jumps):
            distance = max(first - jump.index, jump.index - last, 0)
            if distance <= MAY_MOVE and (jump.mean_after > jump.mean_before) == alert.rose:
                untouched = alert.triage == Alert.Triage.UNTRIAGED
                pairs.append((distance, untouched, alert.pk, place, alert))
    matched: dict[int, Alert] = {}
    taken: set[int] = set()
    for _, _, pk, place, alert in sorted(pairs, key=lambda pair: pair[:4]):
        if place not in matched and pk not in taken:
            matched[place] = alert
            taken.add(pk)
    return matched


def _runs(trend: Trend, team_id: int, jumps: Sequence[Jump], stored: Sequence[Alert]) -> Mapping[int, int]:
    """The ids of the runs on both sides of the jumps, by number; those that the alerts hold are not asked for again."""
    known = {run.number: run.pk for alert in stored for run in (alert.run_before, alert.run_after) if run}
    numbers = trend.points["number"]
    wanted = {int(numbers[place]) for jump in jumps for place in (jump.index - 1, jump.index)} - known.keys()
    if wanted:
        known |= dict(Run.objects.filter(team_id=team_id, number__in=wanted).values_list("number", "pk"))
    return known


def _found(trend: Trend, metric: MetricSpec, jump: Jump, state: Alert.State, runs: Mapping[int, int]) -> dict[str, Any]:
    before, after = trend.points[jump.index - 1], trend.points[jump.index]
    up = jump.mean_after > jump.mean_before
    return {
        "state": state,
        "stands": True,
        "worse": up != metric.higher_is_better,
        "run_before_id": runs.get(int(before["number"])),
        "run_after_id": runs.get(int(after["number"])),
        "before_at_s": float(before["at_s"]),
        "after_at_s": float(after["at_s"]),
        "mean_before": jump.mean_before,
        "mean_after": jump.mean_after,
        "change_ratio": jump.change_ratio if isfinite(jump.change_ratio) else None,
        "n_before": jump.n_before,
        "n_after": jump.n_after,
        "p": jump.p,
    }


def _set(alert: Alert, values: Mapping[str, Any]) -> bool:
    """Whether anything was not as it is now: most alerts of a long trend stay as they are when a run is added."""
    changed = False
    for name, value in values.items():
        if getattr(alert, name) != value:
            setattr(alert, name, value)
            changed = True
    return changed or alert.pk is None
