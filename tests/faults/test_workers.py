"""Workers that are frozen, killed, told to stop, replaced, or asked twice: what becomes of their runs."""

from __future__ import annotations

import itertools
import random
import signal
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from experiments.asking.launching.cancelling import cancel_run
from experiments.models import Canary, Run
from experiments.registry.errors import Conflict
from experiments.tasks import dispatch, execute_run
from tests.faults.stage import PATIENCE_S, Actor, Stage, has_event, spoilt
from tests.sshd import SshdHost

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]

LEASE_S = 2


def loaded(run: Run) -> Callable[[], bool]:
    """Whether the measured load runs."""
    return has_event(run, "load_started", measured=True)


def waits_for_lock(table: str) -> bool:
    """Whether another connection waits for this table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND NOT granted", [table])
        return bool(cursor.fetchone()[0])


def assert_succeeded(run: Run) -> None:
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore) == ("succeeded", "", "verified"), (run.failure, run.failure_hint)
    assert spoilt(run) == []


@pytest.fixture
def trio(stage: Stage, sshd_hosts: tuple[SshdHost, ...]) -> tuple[Actor, ...]:
    """Three hosts, each of which may be SUT or driver."""
    return tuple(stage.add_host(name, host) for name, host in zip("abc", sshd_hosts, strict=True))


def gives_up(stage: Stage, worker: str) -> Callable[[], bool]:
    """Whether the worker has said that another one has its run."""
    return lambda: "another worker took over" in (stage.folder / f"{worker}.log").read_text()


def test_a_worker_that_slept_past_its_lease_touches_nothing(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    asleep = stage.worker_of(run)
    stage.kill_worker(asleep, signal.SIGSTOP)
    stage.until(lambda: stage.worker_of(run) not in ("", asleep))
    stage.kill_worker(asleep, signal.SIGCONT)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    stage.until(gives_up(stage, asleep))
    assert stage.broken() == []


def test_a_worker_frozen_amid_a_transaction_keeps_no_run_to_itself(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(run, "step_intended", index=1))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE experiments_runevent IN SHARE MODE")
        stage.until(lambda: waits_for_lock("experiments_runevent"))  # with the run's row locked
        asleep = stage.worker_of(run)
        stage.kill_worker(asleep, signal.SIGSTOP)
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    stage.kill_worker(asleep, signal.SIGCONT)
    stage.until(gives_up(stage, asleep))
    assert stage.broken() == []


def test_a_worker_that_slept_through_a_whole_run_touches_nothing(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(run, "step_intended", index=1))
    asleep = stage.worker_of(run)
    stage.kill_worker(asleep, signal.SIGSTOP)
    pair[1].release()
    stage.until(stage.all_finished)
    after = stage.story()
    stage.kill_worker(asleep, signal.SIGCONT)
    stage.until(gives_up(stage, asleep))
    assert_succeeded(run)
    assert stage.broken() == []
    assert [(host.starts, host.changes, host.after) for host in stage.story().hosts] == [
        (host.starts, host.changes, host.after) for host in after.hosts
    ]


def test_while_beat_stands_still_the_run_of_a_dead_worker_is_adopted(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    stage.start_beat()
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run), nudge=False)
    stage.kill_worker("beat", signal.SIGSTOP)
    Canary.objects.update(sent_at=Now() - timedelta(minutes=2))  # for so long already
    dead = stage.worker_of(run)
    stage.kill_worker(dead)
    stage.until(lambda: stage.worker_of(run) not in ("", dead), nudge=False, seconds=75)
    pair[1].release()
    later = stage.launch(*pair, warm_up_s=0)
    stage.until(stage.all_finished, nudge=False)
    stage.kill_worker("beat", signal.SIGCONT)
    for one in (run, later):
        assert_succeeded(one)
    assert stage.broken() == []


def test_one_message_delivered_twenty_times_to_four_workers_is_one_run(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two", "three", "four"):
        stage.start_worker(name, lease_s=3600)
    run = stage.launch(*pair)
    for _ in range(20):
        execute_run.apply_async((run.pk,), retry=False)
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts == 1
    assert stage.broken() == []


def test_fifty_runs_on_three_hosts_survive_workers_that_are_killed_every_few_seconds(
    stage: Stage, trio: tuple[Actor, ...]
) -> None:
    chance = random.Random(50)
    names = ("one", "two", "three", "four")
    for name in names:
        stage.start_worker(name, lease_s=LEASE_S, concurrency=1)
    # One host that is both SUT and driver, beside a pair of the two others: as much at a time as three hosts allow.
    a, b, c = trio
    pairs = itertools.cycle([(a, a), (b, c), (b, b), (c, a), (c, c), (a, b), (a, a), (c, b), (b, b), (a, c)])
    runs = [stage.launch(sut, driver, warm_up_s=0) for sut, driver in itertools.islice(pairs, 50)]
    killed = 0

    def finished() -> int:
        return Run.objects.filter(state=Run.State.FINISHED).count()

    def adopted() -> bool:
        return Run.objects.filter(attempts__gt=1).exists()

    def busy() -> list[str]:
        """Who has a run now: where few are killed, chance alone may only ever find the idle ones."""
        holders = {stage.worker_of(run) for run in Run.objects.exclude(owner="").exclude(state=Run.State.FINISHED)}
        return sorted(holders - {""})

    while finished() < len(runs):
        goal = min(len(runs), finished() + chance.randint(1, 3))
        stage.until(lambda goal=goal: finished() >= goal)  # type: ignore[misc]
        if finished() < len(runs):
            victim = chance.choice(names if adopted() else busy() or names)
            stage.kill_worker(victim)
            stage.start_worker(victim, lease_s=LEASE_S, concurrency=1)
            killed += 1
    assert stage.broken() == []
    assert killed > 5  # about 25, fewer where this process is slower than the runs
    assert {run.outcome for run in Run.objects.all()} == {"succeeded"}
    assert Run.objects.count() == len(runs)
    assert adopted()


@pytest.mark.parametrize("migrated", (False, True), ids=("same database", "migrated meanwhile"))
def test_a_rolling_deploy_interrupts_no_measurement(migrated: bool, stage: Stage, pair: tuple[Actor, Actor]) -> None:
    # The lease is longer than this test may take: only a run that is let go can be adopted.
    for name in ("old-1", "old-2"):
        stage.start_worker(name, lease_s=3600)
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(loaded(run))
    if migrated:
        add_empty_migration()
    for number in (1, 2):
        stage.kill_worker(f"old-{number}", signal.SIGTERM)
        stage.start_worker(f"new-{number}", lease_s=3600)
    stage.until(lambda: stage.worker_of(run).startswith("new-"))
    pair[1].release()
    stage.until(stage.all_finished)
    assert_succeeded(run)
    assert run.attempts > 1
    assert stage.workers["old-1"].wait(timeout=PATIENCE_S) == 0
    assert stage.workers["old-2"].wait(timeout=PATIENCE_S) == 0
    assert stage.broken() == []


def add_empty_migration() -> None:
    """What an upgrade does to a database: a table gets a column that the old workers do not know."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE experiments_run ADD COLUMN of_the_next_release integer NULL")
        cursor.execute("ALTER TABLE experiments_run DROP COLUMN of_the_next_release")


STATES = ("queued", "preparing", "warming_up", "measuring", "collecting", "restoring", "finished")
LONG_S = 3600


def launched_to_reach(state: str, stage: Stage, pair: tuple[Actor, Actor]) -> Run:
    """A run that stays in this state, or in one between it and the end of its load, until somebody ends it."""
    at = STATES.index(state)
    return stage.launch(
        *pair,
        warm_up_s=LONG_S if at <= STATES.index("warming_up") else 1,
        measure_s=LONG_S if at <= STATES.index("measuring") else 1,
    )


def has_reached(run: Run, state: str) -> Callable[[], bool]:
    """Whether the run is in this state or has passed it: a look may come late."""
    states = STATES[STATES.index(state) :]
    return lambda: Run.objects.filter(pk=run.pk, state__in=states).exists()


@pytest.mark.parametrize("state", STATES[:-1])
def test_a_run_can_be_cancelled_in_every_state_twice(state: str, stage: Stage, pair: tuple[Actor, Actor]) -> None:
    run = launched_to_reach(state, stage, pair)
    if state != "queued":
        stage.start_worker("one")
    stage.until(has_reached(run, state), nudge=state != "queued")
    cancel(stage, run)
    cancel(stage, run)
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert run.outcome in ("cancelled", "succeeded" if state in ("collecting", "restoring") else "cancelled")
    assert run.failure or run.outcome == "succeeded"
    assert stage.broken() == []


@pytest.mark.parametrize("state", STATES[1:-1])
def test_a_cancelled_run_whose_worker_is_killed_at_once_is_still_undone(
    state: str, stage: Stage, pair: tuple[Actor, Actor]
) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=LEASE_S)
    run = launched_to_reach(state, stage, pair)
    stage.until(has_reached(run, state))
    cancel(stage, run)
    if holder := stage.worker_of(run):
        stage.kill_worker(holder)
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert run.outcome in ("cancelled", "succeeded" if state in ("collecting", "restoring") else "cancelled")
    assert stage.broken() == []


def cancel(stage: Stage, run: Run) -> None:
    """Ask for the end; one that is there already is no fault."""
    try:
        cancel_run(stage.member, run)
    except Conflict:
        assert Run.objects.get(pk=run.pk).state == Run.State.FINISHED


def test_two_beats_at_once_start_nothing_twice(stage: Stage, pair: tuple[Actor, Actor]) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=3600)
    runs = [stage.launch(*pair) for _ in range(2)]
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.2):
            dispatch()
        connection.close()

    beats = [threading.Thread(target=beat) for _ in range(2)]
    for thread in beats:
        thread.start()
    try:
        stage.until(stage.all_finished, nudge=False)
    finally:
        over.set()
        for thread in beats:
            thread.join()
    for run in runs:
        assert_succeeded(run)
        assert run.attempts == 1
    assert stage.broken() == []
