"""Which change point is which: what a search finds now, matched with the alerts that are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.changepoints import Changes
from experiments.analysis.changepoints_jumps import Jump
from experiments.analysis.history_points import HistoryPoints
from experiments.judging.alerts.causes import causes_json
from experiments.models import Alert, Run, Trend
from experiments.registry.database_clock import database_now
from experiments.registry.events import AlertConfirmed, tell
from experiments.registry.metrics.vocabulary import MetricSpec

MAY_MOVE = 3
"""Points by which a change point may move and stay the same one: less than two confirmed ones are apart."""


def reconcile(
    trend: Trend,
    metric: MetricSpec,
    nights: HistoryPoints,
    changes: Changes,
    *,
    mutes_improvements: bool = False,
    quiet: bool = False,
) -> None:
    """Make the trend's alerts say what was found.

    A change point is the same as a stored one when it changes in the same direction and lies between that one's run
    before and run after, or at most `MAY_MOVE` points outside; and when it begins with the very run of an alert that
    nobody has looked at. It keeps its id, what a person said about it and that members were told of it. A stored one
    that is found no longer stays, marked: found again it is the same alert.
    """
    team_id = trend.series.team_id
    stored = list(Alert.objects.filter(trend=trend, kind=Alert.Kind.CHANGE).select_related("run_before", "run_after"))
    jumps = [(jump, Alert.State.CONFIRMED) for jump in changes.jumps]
    if changes.suspected is not None:
        jumps.append((changes.suspected, Alert.State.SUSPECTED))
    place = Places(trend.points["number"], nights)
    matched = _match(place, stored, [jump for jump, _ in jumps])
    runs = _runs(place, team_id, [jump for jump, _ in jumps], stored)
    for position, (jump, state) in enumerate(jumps):
        alert = matched.get(position) or Alert(team_id=team_id, trend=trend, kind=Alert.Kind.CHANGE)
        ends = (alert.run_before_id, alert.run_after_id)
        if _set(alert, _found(place, metric, jump, state, runs, mutes_improvements=mutes_improvements)):
            if ends != (alert.run_before_id, alert.run_after_id):
                alert.causes = causes_json(alert.run_before_id, alert.run_after_id)
            confirmed = state == Alert.State.CONFIRMED and alert.confirmed_at is None
            if confirmed:
                alert.confirmed_at = database_now()
            if (quiet or alert.muted) and alert.told_at is None:
                alert.told_at = database_now()
            alert.save()
            if confirmed:
                tell(AlertConfirmed(alert))
    kept = {alert.pk for alert in matched.values()}
    for alert in stored:
        if alert.pk not in kept and alert.stands:
            alert.stands = False
            alert.save(update_fields=["stands"])


@dataclass(frozen=True)
class Places:
    """The runs at the points of a history, by their numbers."""

    numbers: NDArray[np.int64]
    nights: HistoryPoints

    def before(self, index: int) -> int:
        """The last run of the point before."""
        return int(self.numbers[self.nights.last[index - 1]])

    def after(self, index: int) -> int:
        """The first run of the point with the new level."""
        return int(self.numbers[self.nights.first[index]])


def _match(place: Places, stored: Sequence[Alert], jumps: Sequence[Jump]) -> dict[int, Alert]:
    """Alerts by the place of their jump in `jumps`; the nearest pairs first, and those that a person has looked at."""
    pairs, at_s = [], place.nights.at_s
    for alert in stored:
        first = int(np.searchsorted(at_s, alert.before_at_s, side="right"))
        last = max(int(np.searchsorted(at_s, alert.after_at_s or alert.before_at_s)), first)
        untouched = alert.triage == Alert.Triage.UNTRIAGED and alert.owner_id is None and not alert.note
        for position, jump in enumerate(jumps):
            distance = max(first - jump.index, jump.index - last, 0)
            same_way = (jump.mean_after > jump.mean_before) == alert.rose
            same_run = alert.run_after is not None and alert.run_after.number == place.after(jump.index)
            if (same_way and distance <= MAY_MOVE) or (same_run and untouched):
                pairs.append((not same_way, distance, untouched, alert.pk, position, alert))
    matched: dict[int, Alert] = {}
    taken: set[int] = set()
    for *_, pk, position, alert in sorted(pairs, key=lambda pair: pair[:5]):
        if position not in matched and pk not in taken:
            matched[position] = alert
            taken.add(pk)
    return matched


def _runs(place: Places, team_id: int, jumps: Sequence[Jump], stored: Sequence[Alert]) -> Mapping[int, int]:
    """The ids of the runs on both sides of the jumps, by number; those that the alerts hold are not asked for again."""
    known = {run.number: run.pk for alert in stored for run in (alert.run_before, alert.run_after) if run}
    wanted = {number for jump in jumps for number in (place.before(jump.index), place.after(jump.index))}
    wanted -= known.keys()
    if wanted:
        known |= dict(Run.objects.filter(team_id=team_id, number__in=wanted).values_list("number", "pk"))
    return known


def _found(
    place: Places,
    metric: MetricSpec,
    jump: Jump,
    state: Alert.State,
    runs: Mapping[int, int],
    *,
    mutes_improvements: bool,
) -> dict[str, Any]:
    worse = (jump.mean_after > jump.mean_before) != metric.higher_is_better
    return {
        "state": state,
        "stands": True,
        "worse": worse,
        "muted": mutes_improvements and not worse,
        "run_before_id": runs.get(place.before(jump.index)),
        "run_after_id": runs.get(place.after(jump.index)),
        "before_at_s": float(place.nights.at_s[jump.index - 1]),
        "after_at_s": float(place.nights.at_s[jump.index]),
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
