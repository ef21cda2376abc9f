"""Workers, queues and counts as the operator sees them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.events import PhaseFinished
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.keeping.operating import canaries, operations
from experiments.keeping.operating.bounded_look import BoundedLook, NoAnswer
from experiments.keeping.operating.slow_work import PLACES, PLACES_OF_ONE_TEAM, if_there_is_room
from experiments.models import Canary, Host, Member, Run, Tally, Worker
from experiments.registry.database_clock import database_now
from experiments.registry.workers import outbox, tallies
from experiments.registry.workers.outbox import MOST_WAITING, Sender
from experiments.registry.workers.presence import Presence, process_name
from experiments.registry.workers.tallies import Count
from tests.frontend.conftest import write

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db


def worker(**fields: Any) -> Worker:
    given = {"name": "runs@a", "process": "a:1", "queues": ["runs"], "slots": 1, "version": "1"}
    moments = {"started_at": Now() - HOUR, "seen_at": Now()}
    return Worker.objects.create(**{**given, **moments, **fields})


def canary(*, sent_s: float = 5, taken_s: float | None = 5) -> None:
    """A canary of the queue runs, as of so many seconds ago."""
    taken = None if taken_s is None else Now() - timedelta(seconds=taken_s)
    Canary.objects.create(queue="runs", sent_at=Now() - timedelta(seconds=sent_s), taken_at=taken, delay_s=0.1)


def runs_queue() -> canaries.QueueState:
    return canaries.queue_states(["runs"], database_now())[0]


def test_a_worker_shows_itself_and_takes_its_row_away_when_it_leaves() -> None:
    presence = Presence("runs@a", ["runs", "default"], 4)

    presence.show()
    presence.show()

    row = Worker.objects.get()
    assert (row.name, row.process, row.queues, row.slots) == ("runs@a", process_name(), ["default", "runs"], 4)
    assert row.started_at < row.seen_at or row.started_at == row.seen_at


@pytest.mark.django_db(transaction=True)
def test_the_thread_of_a_worker_writes_its_row_and_removes_it() -> None:
    shown = threading.Event()

    class Watched(Presence):
        def show(self) -> None:
            super().show()
            shown.set()

    presence = Watched("runs@a", ["runs"], 4)
    presence.start()
    assert shown.wait(120)
    assert Worker.objects.filter(process=process_name()).exists()
    presence.leave()

    assert not Worker.objects.exists()


def test_the_row_of_a_killed_predecessor_goes_and_a_silent_stranger_stays_for_a_day() -> None:
    minute = Now() - timedelta(minutes=1)
    worker(process="a:1", seen_at=minute)
    worker(process="b:1", name="runs@b", seen_at=minute)
    worker(process="c:1", name="runs@c", seen_at=Now() - timedelta(hours=25))
    worker(process="a:2", name="runs@a", seen_at=Now())

    Presence("runs@a", ["runs"], 4).show()

    assert set(Worker.objects.values_list("process", flat=True)) == {"b:1", "a:2", process_name()}


def test_a_queue_nobody_has_sent_through_is_unknown() -> None:
    assert (runs_queue().level, operations.look().beat_silent) == ("unknown", True)


def test_a_canary_that_was_taken_shows_that_the_queue_moves() -> None:
    worker()
    canaries.sent("runs")
    canaries.taken("runs")

    state = runs_queue()

    assert state.level == "ok"
    assert state.delay_s is not None
    assert operations.look().beat_silent is False


@pytest.mark.parametrize("taken_s", [None, 121.0])
def test_a_queue_without_workers_is_stuck_and_says_so(taken_s: float | None) -> None:
    canary(taken_s=taken_s)
    worker(seen_at=Now() - HOUR)

    assert runs_queue().sentence == "The queue runs is stuck: no worker takes messages from it."


def test_a_queue_whose_idle_workers_take_nothing_is_stuck() -> None:
    canary(taken_s=121)
    worker(slots=4)

    state = runs_queue()

    assert state.level == "stuck"
    assert "its workers are there (0 of 4 slots hold a run)" in state.sentence


def test_a_queue_whose_workers_all_hold_live_runs_is_busy_not_stuck(admin: Member, stock: dict[str, Any]) -> None:
    canary(taken_s=600)
    worker(process="a:1", slots=1)
    run = launch_run(admin, Choice(**stock))
    Run.objects.filter(pk=run.pk).update(state="measuring", owner="a:1:77", lease_until=Now() + timedelta(seconds=50))

    assert runs_queue().level == "busy"

    Run.objects.filter(pk=run.pk).update(lease_until=Now() - timedelta(seconds=1))
    assert runs_queue().level == "stuck"


def test_workers_that_have_just_started_are_given_time() -> None:
    canary(taken_s=None)
    worker(started_at=Now() - timedelta(seconds=5))

    assert runs_queue().level == "unknown"


def test_a_silent_beat_says_nothing_about_the_queue() -> None:
    canary(sent_s=150, taken_s=149)
    worker()

    assert runs_queue().sentence.startswith("Beat is silent")


def test_counting_adds_up_also_within_one_statement() -> None:
    tallies.count("adoptions")
    tallies.count_all([Count("runs_finished", "failed"), Count("runs_finished", "failed"), Count("adoptions", by=2)])
    tallies.count_all([])

    values = {(tally.name, tally.label): tally.value for tally in Tally.objects.all()}
    assert values == {("adoptions", ""): 3, ("runs_finished", "failed"): 2}


def test_a_count_belongs_to_its_transaction() -> None:
    with transaction.atomic():
        tallies.count("adoptions")
        transaction.set_rollback(True)

    assert not Tally.objects.exists()


def test_a_finished_run_counts_its_outcome_its_restore_and_its_phases(admin: Member, stock: dict[str, Any]) -> None:
    run = launch_run(admin, Choice(**stock))
    run.outcome, run.restore = Run.Outcome.SUCCEEDED, Run.Restore.VERIFIED
    write(run, PhaseFinished("tune", 2.0), PhaseFinished("measure", 61.0))

    tallies.tally_run(run)

    values = {f"{tally.name} {tally.label}": tally.value for tally in Tally.objects.all()}
    assert values["runs_finished succeeded"] == values["restores verified"] == 1
    assert (values["phase_sum_s measure"], values["phase_count measure"]) == (61, 1)
    assert [name for name in sorted(values) if "bucket measure" in name] == [
        "phase_bucket measure 300", "phase_bucket measure 3600", "phase_bucket measure 900",
    ]  # fmt: skip


def test_the_look_names_the_oldest_waiting_run_live_runs_and_hosts_that_are_not_ready(
    admin: Member, stock: dict[str, Any]
) -> None:
    live = launch_run(admin, Choice(**stock))
    waiting = launch_run(admin, Choice(**stock))
    lease = Now() + timedelta(seconds=40)
    Run.objects.filter(pk=live.pk).update(state="measuring", owner="a:1:77", lease_until=lease)
    Host.objects.filter(pk=stock["sut"].pk).update(leased_by=live)
    Host.objects.filter(pk=stock["drivers"][0].pk).update(state="drained")
    worker(process="a:1")

    found = operations.look()

    assert found.oldest == waiting
    assert "driver-1" in found.oldest_reason or "sut-1" in found.oldest_reason
    assert [(state.label, state.runs, round(state.lease_age_s or 0)) for state in found.live] == [("Measuring", 1, 20)]
    assert [host.name for host in found.hosts] == ["driver-1"]
    assert [[run.pk for run in one.runs] for one in found.workers] == [[live.pk]]
    assert found.queued == {"Normal": 1}
    assert found.database.size_bytes > 0
    assert found.broker.answers
    assert found.now <= timezone.now() + HOUR


def test_a_look_that_hangs_gives_up_in_time_and_only_one_hangs() -> None:
    release, begun = threading.Event(), []

    def hang() -> int:
        begun.append(1)
        release.wait(120)
        return 7

    look = BoundedLook(hang, limit_s=0.01, kept_s=60)
    for _ in range(3):
        with pytest.raises(NoAnswer):
            look()
    patient = look._current
    release.set()

    assert patient is not None
    assert patient.result(120) == 7
    assert look() == 7
    assert begun == [1]


class HungBroker:
    """Takes no message until it is let go."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.entered, self.release = threading.Event(), threading.Event()

    def publish(self, message: outbox.Message) -> None:
        self.entered.set()
        self.release.wait(120)
        self.sent.append(message.row_id)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    moment = [1000.0]
    monkeypatch.setattr("experiments.registry.workers.outbox.time.monotonic", lambda: moment[0])

    def pass_s(seconds: float) -> None:
        moment[0] += seconds

    return pass_s


@pytest.mark.django_db(transaction=True)
def test_a_hung_broker_holds_up_nobody_and_what_is_too_much_or_too_old_is_dropped_and_counted(
    clock: Callable[[float], None],
) -> None:
    broker = HungBroker()
    sender = Sender(broker.publish)
    for row_id in range(MOST_WAITING + 51):
        sender.put(outbox.Message(outbox.EXECUTE_RUN, row_id, time.monotonic()))
        if row_id == 0:
            assert broker.entered.wait(120)
    assert not sender.flush(0)

    clock(outbox.HINT_EXPIRES_S + 1)
    broker.release.set()

    assert sender.flush(60)
    assert broker.sent == [0]
    assert Tally.objects.get(name="hints_dropped").value == MOST_WAITING + 50


def test_messages_are_sent_in_order_and_flush_waits_for_the_last() -> None:
    broker = HungBroker()
    sender = Sender(broker.publish)
    broker.release.set()
    for row_id in range(20):
        sender.put(outbox.Message(outbox.EXECUTE_RUN, row_id, time.monotonic()))

    assert sender.flush(30)
    assert broker.sent == list(range(20))


@pytest.mark.parametrize(("team_id", "places"), [(None, PLACES), (7, PLACES_OF_ONE_TEAM)])
def test_work_that_waits_for_others_leaves_threads_for_what_is_due(team_id: int | None, places: int) -> None:
    begun, go_on, done = threading.Barrier(places + 1), threading.Event(), list[int]()

    def start(work: Callable[[int], object], row_id: int) -> None:
        if_there_is_room(work, row_id, team_id=team_id)

    def wait(row_id: int) -> None:
        begun.wait(60)
        go_on.wait(60)
        done.append(row_id)

    waiting = [threading.Thread(target=start, args=(wait, 1)) for _ in range(places)]
    for thread in waiting:
        thread.start()
    begun.wait(60)
    start(done.append, 2)
    assert done == []
    if_there_is_room(done.append, 4, team_id=8)
    assert done == ([] if team_id is None else [4])
    done.clear()
    go_on.set()
    for thread in waiting:
        thread.join()
    start(done.append, 3)
    assert done == [1] * places + [3]
