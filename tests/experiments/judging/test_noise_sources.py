"""Where the noise comes from, by made-up runs whose noise is known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.utils import timezone

from experiments.asking.launching.choices import Candidate
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.verdicts.noise_sources import NoiseSources, noise_sources, windows_of
from experiments.models import Experiment, Member, Run, SampleSeries

SECONDS = [second + 0.5 for second in range(60)]


def test_windows_are_whole_and_begin_where_measuring_does() -> None:
    at_s = [second + 0.5 for second in range(-3, 13)]
    assert windows_of(at_s, [float(second) for second in range(-3, 13)]) == [2.0, 7.0]
    assert windows_of([], []) == []
    assert windows_of([0.5, 11.5], [1.0, 1.0]) == [1.0]


def run_all(admin: Member, stock: dict[str, Any], *, inside: float, between: float, took_s: float) -> Experiment:
    """Eight runs of 60 s; the noise of a second inside a run, and of the level from run to run."""
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    experiment = create_experiment(
        admin, name="q", workload=stock["workload"], candidates=[Candidate("a", **sides)], repetitions=8
    )
    rng = np.random.default_rng(4)
    now = timezone.now()
    for run in launch_experiment(admin, experiment):
        values = 1000 + rng.normal(0, between) + rng.normal(0, inside, len(SECONDS))
        Run.objects.filter(pk=run.pk).update(
            state="finished",
            outcome="succeeded",
            validity="valid",
            metrics={"throughput_rps": float(values.mean())},
            started_at=now - timedelta(seconds=took_s),
            finished_at=now,
        )
        SampleSeries.objects.create(
            run=run, role="driver", channel="load.throughput_rps", unit="requests/s", at_s=SECONDS, values=list(values)
        )
    return experiment


def sources(experiment: Experiment) -> NoiseSources | None:
    return noise_sources(experiment, list(experiment.variants.all()), list(experiment.runs.all()))


def test_noise_from_run_to_run_asks_for_more_repetitions(admin: Member, stock: dict[str, Any]) -> None:
    found = sources(run_all(admin, stock, inside=5.0, between=20.0, took_s=80.0))
    assert found is not None
    assert (found.runs, found.windows, found.best_windows) == (8, 12, 1)
    assert found.between_ratio > 0.9
    assert found.sentence.endswith("5 s in each run would do; spend the rest on more repetitions.")


def test_noise_inside_the_runs_asks_for_a_longer_window(admin: Member, stock: dict[str, Any]) -> None:
    found = sources(run_all(admin, stock, inside=80.0, between=2.0, took_s=600.0))
    assert found is not None
    assert found.inside_ratio > 0.9
    assert "measure longer" in found.sentence or "measure about" in found.sentence


@pytest.mark.parametrize("left", [0, 2])
def test_too_few_runs_or_a_tool_without_a_course_say_nothing(admin: Member, stock: dict[str, Any], left: int) -> None:
    experiment = run_all(admin, stock, inside=5.0, between=5.0, took_s=80.0)
    keep = experiment.runs.order_by("id").values_list("pk", flat=True)[:left]
    SampleSeries.objects.exclude(run__in=list(keep)).delete()
    assert sources(experiment) is None
