"""Clocks that differ from the database's are named, and times of a clock that was set back deceive nobody."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db.models.functions import Now

from experiments.keeping.operating import canaries, operations
from experiments.keeping.operating.clocks import hosts_with_wrong_clocks, wrong_clocks
from experiments.models import Canary, Host, Member, Worker
from experiments.registry import database_clock
from experiments.registry.database_clock import clock_ahead_s, database_now
from experiments.registry.workers.presence import Presence
from experiments.tasks import stand_in_for_beat
from tests.experiments.conftest import ready_host

pytestmark = pytest.mark.django_db

SHIFTS_S = [-86400.0, -3600.0, -10.0, 10.0, 3600.0, 86400.0]


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock of this process, as far as it is compared with the database's."""

    def set_by(seconds: float) -> None:
        monkeypatch.setattr(database_clock, "time", SimpleNamespace(time=lambda: time.time() + seconds))

    return set_by


def sentences() -> list[str]:
    return [clock.sentence for clock in wrong_clocks(database_now())]


def test_a_clock_that_is_right_is_not_named() -> None:
    assert clock_ahead_s() == pytest.approx(0.0, abs=0.1)
    Presence("runs@a", ["runs"], 4).show()
    canaries.sent("runs")
    assert sentences() == []


@pytest.mark.parametrize("shift_s", SHIFTS_S)
def test_each_process_with_another_clock_is_named_with_the_way_and_what_to_do(
    shift: Callable[[float], None], shift_s: float
) -> None:
    shift(shift_s)
    Presence("runs@a", ["runs"], 4).show()
    canaries.sent("runs")

    told = sentences()

    whose = [sentence.split(" is ")[0] for sentence in told]
    assert [text.split(" (")[0] for text in whose] == [
        "The clock of this web server",
        "The clock of the worker runs@a",
        "The clock of beat",
    ]
    way = "ahead of" if shift_s > 0 else "behind"
    assert all(f" {way} the database's. Have that machine ask a time server" in sentence for sentence in told)


@pytest.mark.parametrize(
    ("ahead_s", "words"), [(-61.3, "61.3 s behind"), (3600.0, "60 min ahead of"), (1e5, "27.8 h ahead of")]
)
def test_a_host_with_another_clock_is_named_to_the_operator(admin: Member, ahead_s: float, words: str) -> None:
    host = ready_host(admin, "sut-1")
    assert hosts_with_wrong_clocks() == []

    Host.objects.filter(pk=host.pk).update(clock_ahead_s=ahead_s)

    assert [clock.sentence.split(". ")[0] for clock in operations.look().wrong_clocks] == [
        f"The clock of the host sut-1 of the team perf is {words} the database's"
    ]


def test_a_worker_and_a_beat_that_were_seen_in_the_future_are_not_there() -> None:
    """The clock was set back after they had died: who lives says so again within seconds."""
    ahead = Now() + timedelta(hours=1)
    Worker.objects.create(name="runs@a", process="a:1", queues=["runs"], version="1", started_at=ahead, seen_at=ahead)
    Canary.objects.create(queue="runs", sent_at=Now(), taken_at=ahead)

    assert canaries.queue_states(["runs"], database_now())[0].level == "stuck"
    assert [one.silent for one in operations.workers(database_now())] == [True]

    Canary.objects.update(sent_at=ahead)

    assert canaries.queue_states(["runs"], database_now())[0].sentence.startswith("Beat is silent")
    assert canaries.beat_is_silent()


@pytest.mark.parametrize(("sent_s_ago", "stands_in"), [(None, True), (31, False), (120, True), (-3600, True)])
def test_a_worker_looks_for_what_is_due_while_beat_stands_still(
    monkeypatch: pytest.MonkeyPatch, sent_s_ago: int | None, stands_in: bool
) -> None:
    hints: list[int] = []
    monkeypatch.setattr("experiments.tasks.queue.something_to_do", lambda site: True)
    monkeypatch.setattr("experiments.tasks.hint", lambda run_id, site: hints.append(run_id))
    if sent_s_ago is not None:
        Canary.objects.create(queue="runs", sent_at=Now() - timedelta(seconds=sent_s_ago))

    stand_in_for_beat()

    assert bool(hints) is stands_in
