"""What is said before a launch: cost by the past of the recipes, and what the repetitions can find."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.events import PhaseFinished, to_json
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.forecast import Arm, Forecast, forecast, noise_of
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Recipe, Run, RunEvent, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.experiments.rules import Rules
from tests.experiments.conftest import RECIPE, WORKLOAD

SECONDS = {"connect": 1.0, "tune": 4.0, "start": 5.0, "warm_up": 3.0, "measure": 10.0, "collect": 1.0, "restore": 6.0}


@pytest.fixture
def workload(admin: Member) -> Workload:
    phases = [{"name": "w", "kind": "warm_up", "duration_s": 5}, {"name": "m", "kind": "measure", "duration_s": 30}]
    return save_version(admin, Workload, "with warm-up", {**WORKLOAD, "phases": phases})


def past_run(member: Member, stock: dict[str, Any], value: float, *, events: bool = True, **more: Any) -> Run:
    """A run that ended well and took 47 s from its start to its end."""
    run = launch_run(member, Choice(**{**stock, **more}))
    now = timezone.now()
    Run.objects.filter(pk=run.pk).update(
        state="finished",
        outcome="succeeded",
        validity="valid",
        metrics={"throughput_rps": value},
        started_at=now - timedelta(seconds=47),
        finished_at=now,
    )
    for seq, (phase, duration_s) in enumerate(SECONDS.items() if events else (), start=1):
        event = PhaseFinished(phase, duration_s)  # type: ignore[arg-type]
        RunEvent.objects.create(run=run, seq=seq, kind=event.kind, payload=to_json(event), fence=1, at=now)
    return run


def asked(stock: dict[str, Any], workload: Workload, rules: Rules | None = None, **more: Any) -> Forecast:
    arms = [Arm(name, stock["recipe"], stock["sut"], name == "a") for name in "ab"]
    wanted = {"repetitions": 5, "metric": "throughput_rps", "margin_ratio": 0.03, **more}
    return forecast(workload, arms, rules=rules or Rules(), **wanted)


def test_a_recipe_with_a_past_costs_what_it_cost(admin: Member, stock: dict[str, Any], workload: Workload) -> None:
    for _ in range(3):
        past_run(admin, stock, 1000.0)
    found = asked(stock, workload)
    assert [
        (arm.basis, arm.runs, arm.prepare_s, arm.warm_up_s, arm.measure_s, arm.cool_down_s) for arm in found.arms
    ] == [("recipe", 3, 10.0, 5.0, 30.0, 7.0)] * 2
    assert (found.first.blocks, found.first.runs, found.first.duration_s) == (5, 10, 10 * 52.0)
    assert found.first == found.most
    assert found.sentences[0] == "10 runs, about 9 min."


def test_without_a_past_of_the_recipe_the_host_tells_and_without_any_a_usual_run(
    admin: Member, stock: dict[str, Any], workload: Workload
) -> None:
    assert {arm.basis for arm in asked(stock, workload).arms} == {"usual"}
    other = save_version(admin, Recipe, "other", RECIPE)
    past_run(admin, stock, 1000.0, recipe=other)
    found = asked(stock, workload)
    assert [(arm.basis, arm.prepare_s, arm.cool_down_s) for arm in found.arms] == [("host", 37.0, 0.0)] * 2


def test_a_stop_rule_and_an_a_a_check_have_their_worst_case(stock: dict[str, Any], workload: Workload) -> None:
    found = asked(stock, workload, Rules(stop_rule="until_clear", aa_first=True, max_hours=3.0))
    assert (found.first.blocks, found.first.runs) == (5, 20)
    assert (found.most.blocks, found.most.runs) == (20, 50)
    assert "10 of them the baseline against itself" in found.sentences[0]
    assert "It stops before a look that would take it over 3 h." in found.sentences
    assert found.sentences[-1].startswith("No earlier runs of this workload on sut-1 tell the noise")


def test_profiled_twins_are_runs_that_take_their_time(admin: Member, stock: dict[str, Any], workload: Workload) -> None:
    plain = asked(stock, workload, Rules(stop_rule="until_clear", aa_first=True))
    found = asked(stock, workload, Rules(stop_rule="until_clear", aa_first=True), profilers=("async-profiler",))
    assert (found.first.runs, found.most.runs) == (10 + 2 * 10, 10 + 2 * 40)
    check_s = 10 * found.arms[0].total_s
    assert found.first.duration_s - check_s == pytest.approx(2 * (plain.first.duration_s - check_s))
    assert "30 runs, 10 of them the baseline against itself, 10 of them profiled twins" in found.sentences[0]
    named = save_version(admin, Workload, "profiled", {**workload.body, "profilers": ["async-profiler"]})
    assert asked(stock, named).first.runs == 20
    assert asked(stock, named, profilers=()).first.runs == 10


NOISY = (1000.0, 1020.0, 985.0, 1010.0, 990.0, 1005.0)


def test_the_noise_of_the_past_tells_what_can_be_found(admin: Member, stock: dict[str, Any]) -> None:
    for value in NOISY:
        past_run(admin, stock, value, events=False)
    found = asked(stock, stock["workload"])
    assert found.noise is not None
    assert found.noise.runs == 6
    assert found.noise.cov_ratio == pytest.approx(0.0129, abs=0.0005)
    by_blocks = {one.blocks: one.change_ratio for one in found.finds}
    assert list(by_blocks) == [5, 8, 12, 20]
    assert by_blocks[5] > by_blocks[8] > by_blocks[12] > by_blocks[20]
    assert found.needed_blocks is not None
    assert "CoV 1.3 %; with it, 5 blocks find a change of" in " ".join(found.sentences)
    assert found.sentences[-1].startswith(f"To settle ±3 % takes about {found.needed_blocks} blocks")


def test_too_few_repetitions_for_the_noise_are_called_so(admin: Member, stock: dict[str, Any]) -> None:
    for value in NOISY:
        past_run(admin, stock, 1000 + 10 * (value - 1000), events=False)
    found = asked(stock, stock["workload"])
    assert found.needed_blocks is not None
    assert found.needed_blocks > 100
    assert found.sentences[-1].endswith("more than these: expect “inconclusive”.")


def test_what_is_not_the_same_is_not_noise(admin: Member, stock: dict[str, Any]) -> None:
    fast = save_version(admin, Recipe, "fast", RECIPE)
    for value in NOISY[:3]:
        past_run(admin, stock, value, events=False)
        past_run(admin, stock, 2 * value, events=False, recipe=fast)
    found = noise_of(stock["workload"], stock["sut"], "throughput_rps")
    assert found is not None
    assert found.cov_ratio < 0.02
    assert noise_of(stock["workload"], stock["sut"], "latency_p99_ms") is None
    assert noise_of(stock["workload"], stock["drivers"][0], "throughput_rps") is None


def test_the_number_of_queries_does_not_grow_with_the_past(
    admin: Member, stock: dict[str, Any], workload: Workload
) -> None:
    counts = []
    for _ in range(2):
        past_run(admin, stock, 1000.0)
        past_run(admin, stock, 1010.0)
        with CaptureQueriesContext(connection) as captured:
            asked(stock, workload)
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 7
