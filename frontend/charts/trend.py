"""What the history chart draws of a trend: its points, its jumps, what is expected, where the machine changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.urls import reverse

from experiments.judging.alerts.triage import ExpectedLevel
from experiments.judging.comparing.history import MAX_POINTS, MetricHistory
from experiments.judging.comparing.lines import line_names
from experiments.models import Alert, Annotation, Series, Team
from frontend.charts.metric import metric_json
from frontend.shared.hardware import headline

MOST_MARKERS = 20
"""More lines than that say nothing."""
TURNS = 2
"""Machines that follow each other more often than this many times each are measured in turn: each has its own line."""


@dataclass(frozen=True)
class Environment:
    """What ran the points of one series; `name` tells series apart that differ in nothing else here."""

    name: str
    cpu: str = ""
    memory: str = ""
    kernel: str = ""
    tool: str = ""

    @classmethod
    def of(cls, series: Series) -> Environment:
        found = headline(series.sut_profile.facts) if series.sut_profile else None
        profile = str(series.sut_profile or "unknown")
        if found is None:
            return cls(f"{profile} · {series.tool}", tool=series.tool)
        cpu = " ".join(part for part in (found.cpu, found.cpus) if part)
        return cls(f"{profile} · {series.tool}", cpu, found.memory, found.kernel, series.tool)

    def changed(self, before: Environment) -> str:
        """What is not as it was before, in a few words."""
        parts = [
            f"{what} {now}"
            for what in ("cpu", "memory", "kernel", "tool")
            if (now := getattr(self, what)) != getattr(before, what)
        ]
        return ", ".join(parts).replace("cpu ", "CPU ") or "hardware profile"


def trend_json(
    team: Team,
    histories: Mapping[Environment, MetricHistory],
    changes: Sequence[Alert],
    levels: Sequence[ExpectedLevel],
    notes: Sequence[Annotation] = (),
) -> dict[str, Any]:
    """The points of one or more series in the order of time, and what is marked among them."""
    by_name = {environment.name: environment for environment in histories}
    found = history_json(
        {environment.name: history for environment, history in histories.items()},
        run_url=reverse("run", args=[team.slug, 0]),
    )
    points = sorted(found["points"], key=lambda point: (point["at"], point["number"]))
    shown = {point["number"] for point in points}
    environments = _environments(points, by_name)
    in_turn = len(environments) > TURNS * len({point["environment"] for point in points})
    return {
        **found,
        "points": points,
        "in_turn": in_turn,
        "environments": environments if len(environments) <= MOST_MARKERS and not in_turn else [],
        "changes": [_change(alert, team) for alert in changes if alert.run_after and alert.run_after.number in shown],
        "notes": [note_json(note) for note in notes],
        "levels": [{"recipe": level.recipe, "variation": level.variation, "value": level.value} for level in levels],
    }


def note_json(note: Annotation) -> dict[str, Any]:
    """What somebody wrote at a moment."""
    author = note.author.get_username() if note.author else ""
    return {"at": note.at.isoformat(), "text": note.text, "author": author}


def _environments(points: Sequence[Mapping[str, Any]], by_name: Mapping[str, Environment]) -> list[dict[str, str]]:
    """Where one environment follows another, and what is new in it."""
    found = []
    for before, after in pairwise(points):
        old, new = by_name[before["environment"]], by_name[after["environment"]]
        if old != new:
            found.append({"at": after["at"], "text": new.changed(old)})
    return found


def _change(alert: Alert, team: Team) -> dict[str, Any]:
    return {
        "at": alert.changed_at.isoformat() if alert.changed_at else "",
        "number": alert.run_after.number if alert.run_after else None,
        "recipe": alert.trend.recipe,
        "change_ratio": alert.change_ratio,
        "worse": alert.worse,
        "state": alert.state,
        "triage": alert.get_triage_display().lower(),
        "url": reverse("alert", args=[team.slug, alert.pk]),
    }


def history_json(
    histories: Mapping[str, MetricHistory], *, run_url: str, highlight: Iterable[int] = ()
) -> dict[str, Any]:
    """Points of one or more series of a metric. Keys name the hardware; `run_url` is a run's address with 0 in it."""
    every = [point for history in histories.values() for point in history.points]
    line_of = iter(line_names(every, unnamed="imported"))
    points: list[dict[str, Any]] = [
        {
            "number": point.number,
            "at": point.at.isoformat(),
            "value": point.value,
            "runs": list(point.runs),
            "spread": point.spread,
            "recipe": point.recipe,
            "line": next(line_of),
            "validity": point.validity,
            "labels": dict(point.labels),
            "environment": environment,
        }
        for environment, history in histories.items()
        for point in history.points
    ]
    points.sort(key=lambda point: point["number"])
    return {
        "metric": metric_json(next(iter(histories.values())).metric),
        "run_url": run_url,
        "highlight": list(highlight),
        "truncated": any(history.truncated for history in histories.values()) or len(points) > MAX_POINTS,
        "thinned": any(history.thinned for history in histories.values()),
        "points": points[-MAX_POINTS:],
    }
