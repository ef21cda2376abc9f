"""Profiled twins of runs: in the same blocks, marked, and in no verdict, trend, gate, baseline or alert."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.copies import copy_experiment
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run, rerun
from experiments.judging.alerts.trends import rebuild
from experiments.judging.comparing.changes import throughput_changes
from experiments.judging.comparing.comparison import compare
from experiments.judging.comparing.history import experiment_runs, profiled_runs
from experiments.judging.gate.decision import experiment_gate, run_gate
from experiments.judging.verdicts.profiling_costs import profiling_costs
from experiments.models import Alert, Experiment, Member, Run, Series, StoredVerdict, Trend, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.runs.baselines import pin
from experiments.running.ending.rejudging import rejudge
from experiments.telling.reports.report import report_of
from tests.experiments.conftest import WORKLOAD
from tests.experiments.finished import finish_next, report, whole_run

SLOWED = 0.5
"""What profiling leaves of the throughput here: so much that no verdict, trend or gate could overlook it."""


def make(admin: Member, stock: dict[str, Any], **more: Any) -> Experiment:
    sides = {key: stock[key] for key in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate(f"v{n}", parameters={"nofile": 2048 + n}, **sides) for n in range(2)]
    more = {"name": "q", "workload": stock["workload"], **more}
    return create_experiment(admin, candidates=candidates, **more)


def play(experiment: Experiment) -> None:
    """Let every run happen; profiled ones and later blocks are slower, the first by far."""
    while (following := experiment.runs.filter(state="queued").order_by("id").first()) is not None:
        assert following.block is not None
        rate = 1000.0 * (1 - 0.001 * following.block) * (SLOWED if following.profiled else 1.0)
        finish_next(whole_run(report(rate)))
        experiment.refresh_from_db()


@pytest.mark.parametrize("order", Experiment.Order.values)
def test_twins_are_in_the_same_blocks_and_count_nowhere(admin: Member, stock: dict[str, Any], order: str) -> None:
    experiment = make(admin, stock, profilers=("async-profiler",), order=order)
    assert len(launch_experiment(admin, experiment)) == 20
    play(experiment)
    runs = list(experiment.runs.all())
    assert Counter((run.block, run.variant_id, run.profiled) for run in runs) == Counter(
        (block, variant.pk, twin) for block in range(5) for variant in experiment.variants.all() for twin in (0, 1)
    )
    twins, plain = profiled_runs(experiment), experiment_runs(experiment)
    assert all(run.is_sound and not run.is_usable for run in twins)
    assert {tuple(run.spec["profilers"]) for run in runs if run.spec and run.profiled} == {("async-profiler",)}
    assert not any("profilers" in run.spec for run in runs if run.spec and not run.profiled)

    own, others = {run.fingerprint for run in twins}, {run.fingerprint for run in plain}
    assert not own & others
    assert set(Series.objects.values_list("fingerprint", flat=True)) == others
    for series in Series.objects.all():
        rebuild(series)
    rejudge(admin.team)
    numbers = {int(point["number"]) for trend in Trend.objects.all() for point in trend.points}
    assert numbers == {run.number for run in plain}
    assert not Alert.objects.exists()

    verdict = StoredVerdict.objects.get(metric="throughput_rps")
    assert (verdict.numbers["n_a"], verdict.numbers["n_b"]) == (5, 5)
    assert verdict.outcome == "no_practical_difference"
    assert experiment_gate(experiment).outcome == "pass"
    assert run_gate(twins[0]).outcome == "inconclusive"
    assert not report_of(experiment, base_url="http://here").left_out
    assert not set(throughput_changes(admin.team, twins))
    assert set(Run.objects.for_team(admin.team).counted()) == set(plain)
    with pytest.raises(Conflict):
        pin(admin, twins[0], "main")
    assert "profiling" in {one.what for one in compare([plain[0], twins[0]]).confounders}

    (cost,) = [one for one in profiling_costs(experiment) if one.metric == "throughput_rps"]
    assert cost.change_pct == pytest.approx(-50, abs=0.1)
    assert (cost.n, cost.is_distorted) == (10, True)


def test_an_a_a_check_and_the_blocks_that_a_rule_adds_keep_to_it(admin: Member, stock: dict[str, Any]) -> None:
    rules = Rules(stop_rule="until_clear", aa_first=True, max_blocks=8)
    experiment = make(admin, stock, profilers=("async-profiler",), rules=rules)
    launch_experiment(admin, experiment)
    assert not experiment.runs.filter(profiled=True).exists()
    play(experiment)
    compared = experiment.runs.filter(block__gte=experiment.first_block)
    assert compared.filter(profiled=True).count() == compared.filter(profiled=False).count() >= 10


def test_an_experiment_takes_the_profilers_of_its_workload_and_a_copy_those_of_the_original(
    admin: Member, stock: dict[str, Any]
) -> None:
    workload = save_version(admin, Workload, "profiled", {**WORKLOAD, "profilers": ["jfr"]})
    experiment = make(admin, stock, workload=workload)
    assert experiment.profilers == ["jfr"]
    assert copy_experiment(admin, experiment).profilers == ["jfr"]
    assert make(admin, stock, workload=workload, profilers=(), name="plain").profilers == []
    assert not launch_run(admin, Choice(**{**stock, "workload": workload})).profiled


def test_a_single_run_is_profiled_when_it_is_asked_for_and_so_is_its_rerun(
    admin: Member, stock: dict[str, Any]
) -> None:
    run = launch_run(admin, Choice(**stock, profilers=("async-profiler", "topdown")))
    assert run.profiled
    finished = finish_next()
    assert finished.is_sound
    assert not Series.objects.exists()
    again = rerun(admin, Run.objects.numbered(run.number) or run)
    assert again.profiled
    assert (again.spec or {})["profilers"] == ["async-profiler", "topdown"]


@pytest.mark.parametrize(
    "profilers, words",
    [
        (("py-spy",), "py-spy profiles Python servers, and this application has none"),
        (("async-profiler", "perf"), "would measure each other"),
        (("gdb",), "async-profiler"),
    ],
)
def test_what_cannot_be_profiled_is_refused_before_anything_is_queued(
    admin: Member, stock: dict[str, Any], profilers: tuple[str, ...], words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        launch_run(admin, Choice(**stock, profilers=profilers))
    with pytest.raises(RequestError, match=words):
        make(admin, stock, profilers=profilers)
    assert not Run.objects.exists()
    assert not Experiment.objects.exists()
