"""Once more by itself: exactly one new run, only when others were at fault, and an experiment waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from agents import events as e
from agents.base.errors import Cause
from experiments.asking.launching.cancelling import cancel_experiment, cancel_run
from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.asking.launching.retries import links_of, queue_retry
from experiments.judging.gate.decision import experiment_gate
from experiments.models import Experiment, Host, Member, Run, StoredVerdict
from experiments.registry.errors import RequestError
from experiments.registry.hosts.inventory import grant
from experiments.running.ending.conclusion import give_up
from experiments.running.executing.recorder import Recorder
from experiments.running.queue.dispatch import claim_next
from tests.experiments.finished import finish_next, report, whole_run


def grant_all(admin: Member, member: Member) -> None:
    """Let the member launch on every host of the team."""
    for host in Host.objects.for_team(admin.team):
        grant(admin, host, member)


def fail(cause: Cause) -> Run:
    """The next run ends in a failure by this fault."""
    return finish_next((e.PhaseStarted("connect"), e.Failed("connect", "It broke.", cause=cause)))


@pytest.fixture
def experiment(admin: Member, stock: dict[str, Any]) -> Experiment:
    parts = {name: stock[name] for name in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate("default", **parts), Candidate("many", parameters={"nofile": 99999}, **parts)]
    return create_experiment(admin, name="q", workload=stock["workload"], candidates=candidates, repetitions=5)


def test_the_new_run_is_the_same_with_one_retry_less(admin: Member, stock: dict[str, Any]) -> None:
    run = launch_run(
        admin,
        Choice(**stock, parameters={"nofile": 4096}),
        labels={"commit": "abc"},
        tags=["night"],
        notes="n",
        priority=Run.Priority.HIGH,
        retries=2,
    )
    failed = fail("host")
    retry = Run.objects.get(retry_of=run)
    same = ("spec", "labels", "tags", "notes", "priority", "sut", "drivers", "recipe", "workload", "created_by")
    assert {name: getattr(retry, name) for name in same} == {name: getattr(failed, name) for name in same}
    assert (retry.number, retry.state, retry.retries_left, retry.outcome) == (2, "queued", 1, "")
    assert (links_of(failed).retried_as, links_of(retry).retry_of) == (2, 1)
    assert launch_run(admin, Choice(**stock)).number == 3


@pytest.mark.parametrize(
    "cause, retries, more",
    [
        ("host", 1, 1),
        ("benchhub", 3, 1),
        ("host", 0, 0),
        ("specification", 3, 0),
        ("person", 3, 0),
    ],
)
def test_only_a_fault_of_others_is_worth_another_try(
    admin: Member, stock: dict[str, Any], cause: Cause, retries: int, more: int
) -> None:
    launch_run(admin, Choice(**stock), retries=retries)
    run = fail(cause)
    assert run.outcome == "failed"
    assert run.retries.count() == more
    assert Run.objects.count() == 1 + more


def test_a_lost_run_is_tried_again_once_whoever_says_so_twice(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock), retries=1)
    run = claim_next("worker")
    assert run is not None
    for _ in range(2):
        give_up(run.pk, run.fence, "BenchHub made a mistake.", "Look.")
    run.refresh_from_db()
    assert (run.outcome, run.retries.count()) == ("lost", 1)
    assert queue_retry(run) is None
    give_up((again := claim_next("worker")).pk, again.fence, "Again.", "")  # type: ignore[union-attr]
    assert Run.objects.count() == 2  # no retry is left


def test_a_run_that_succeeded_or_was_cancelled_is_not_repeated(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock), retries=3)
    finish_next()
    launch_run(admin, Choice(**stock), retries=3)
    run = claim_next("worker")
    assert run is not None
    cancel_run(admin, run)
    give_up(run.pk, run.fence, "BenchHub made a mistake.", "")
    assert Run.objects.count() == 2


def test_a_retry_waits_while_the_host_is_dirty_and_can_be_cancelled(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock), retries=1)
    run = claim_next("worker")
    assert run is not None
    recorder = Recorder(run.pk, run.fence)
    for event in whole_run()[:9]:
        recorder.store(event)
    give_up(run.pk, run.fence, "BenchHub made a mistake.", "")
    retry = Run.objects.get(retry_of=run)
    assert Host.objects.get(name="sut-1").state == "dirty"
    assert claim_next("worker") is None
    cancel_run(admin, retry)
    assert (retry.outcome, Run.objects.count()) == ("cancelled", 2)


def test_the_experiment_runs_on_until_the_retry_has_ended_and_counts_the_repetition_once(
    admin: Member, experiment: Experiment
) -> None:
    runs = launch_experiment(admin, experiment)
    assert {run.retries_left for run in runs} == {1}
    lost = fail("host")
    for _ in range(9):
        _finish_one()
    experiment.refresh_from_db()
    assert experiment.state == "running"
    assert not experiment_gate(experiment).finished
    retry = _finish_one()
    assert (retry.retry_of, retry.variant, retry.block) == (lost, lost.variant, lost.block)
    experiment.refresh_from_db()
    assert experiment.state == "finished"
    numbers = StoredVerdict.objects.get(metric="throughput_rps").numbers
    assert (numbers["n_a"], numbers["n_b"]) == (5, 5)


def test_a_run_that_was_tried_again_is_no_reason_against_a_verdict(admin: Member, experiment: Experiment) -> None:
    launch_experiment(admin, experiment)
    fail("benchhub")
    for _ in range(10):
        _finish_one(errors_connect=1280)  # nothing counts, so there is no verdict
    verdict = experiment_gate(experiment)
    assert verdict.finished
    assert not any("It broke" in reason for reason in verdict.reasons)


def test_cancelling_the_experiment_cancels_the_retry_and_queues_no_other(admin: Member, experiment: Experiment) -> None:
    launch_experiment(admin, experiment, retries=3)
    fail("host")
    active = claim_next("worker")
    assert active is not None
    cancel_experiment(admin, experiment)
    assert not experiment.runs.filter(state="queued").exists()
    give_up(active.pk, active.fence, "BenchHub made a mistake.", "")
    assert not experiment.runs.exclude(state="finished").exists()
    assert Run.objects.filter(retry_of__isnull=False).count() == 1


@pytest.mark.parametrize("retries", [-1, 4])
def test_there_are_between_none_and_three(admin: Member, stock: dict[str, Any], retries: int) -> None:
    with pytest.raises(RequestError) as caught:
        launch_run(admin, Choice(**stock), retries=retries)
    assert caught.value.field == "retries"


def _finish_one(**more: Any) -> Run:
    waiting = Run.objects.filter(state="queued").order_by("id").first()
    assert waiting is not None
    factor = 1.2 if waiting.variant is not None and waiting.variant.name == "many" else 1.0
    return finish_next(whole_run(report(1000.0 * factor * (1 + (waiting.block or 0) / 1000), **more)))
