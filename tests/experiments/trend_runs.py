"""Runs of a series night by night, for the tests of trends and alerts."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.judging.alerts.trends import follow
from experiments.models import Alert, Member, Recipe, Run, Trend
from experiments.registry.runs.numbers import reserve_numbers
from experiments.registry.runs.series import extend_series

START = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
AddRun = Callable[..., Run]


def noise(seed: int = 1) -> random.Random:
    return random.Random(seed)


def runs_of(admin: Member, stock: dict[str, Any]) -> AddRun:
    """Adds a finished run of the day `day`, in its series and its trends as the end of a run leaves it."""
    source = noise()
    template = launch_run(admin, Choice(**stock))

    def add(day: float, level_rps: float, *, recipe: Recipe | None = None, followed: bool = True, **fields: Any) -> Run:
        value = level_rps * (1 + source.gauss(0, 0.005))
        run = Run.objects.get(pk=template.pk)
        run.pk, run.number, run.recipe = None, reserve_numbers(admin.team, 1), recipe or stock["recipe"]
        run.state, run.outcome, run.validity = Run.State.FINISHED, Run.Outcome.SUCCEEDED, Run.Validity.VALID
        run.fingerprint, run.metrics, run.throughput_rps = "f" * 64, {"throughput_rps": value}, value
        run.finished_at = run.measured_at = START + timedelta(days=day)
        for name, given in fields.items():
            setattr(run, name, given)
        run.save()
        series = extend_series(run, application="app", workload="load", tool="wrk 4", latency_basis="service_time")
        if followed:
            follow(run, series)
        return run

    return add


def nights(add_run: AddRun, levels: Iterable[float], first_day: float = 0.0) -> list[Run]:
    return [add_run(first_day + day, level) for day, level in enumerate(levels)]


def the_alert() -> Alert:
    return Alert.objects.get()


def trend() -> Trend:
    return Trend.objects.get(metric="throughput_rps")


def ago(days: float) -> float:
    """The day of a run that ended so many days ago."""
    return (datetime.now(UTC) - START) / timedelta(days=1) - days
