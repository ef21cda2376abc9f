"""Leases when the database's clock is set: nobody loses a run that he works on, nobody dead keeps one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Run
from experiments.running.executing.recorder import Recorder
from experiments.running.queue import dispatch
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.leases import HEARTBEATS_AWAITED, look_over, lost_runs
from tests.experiments.conftest import ready_host

pytestmark = pytest.mark.django_db

STEPS = [timedelta(seconds=61), timedelta(hours=1), timedelta(days=1)]
TIMES = ("lease_until", "doubted_at", "started_at")


@pytest.fixture
def held(admin: Member, stock: dict[str, Any]) -> Run:
    """A run that a worker has claimed."""
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}
    launch_run(admin, Choice(**documents, sut=ready_host(admin, "a"), drivers=[ready_host(admin, "b")]))
    run = claim_next("one")
    assert run is not None
    return run


def set_clock(step: timedelta) -> None:
    """As if the database's clock had been set by so much: every time that it wrote before is that much longer ago."""
    Run.objects.update(**{name: F(name) - step for name in TIMES})


def pass_time(seconds: float) -> None:
    set_clock(timedelta(seconds=seconds))


def grace_s() -> float:
    return HEARTBEATS_AWAITED * settings.BENCHHUB_HEARTBEAT_S


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_set_forward_takes_no_run_from_a_worker_that_lives(held: Run, step: timedelta) -> None:
    set_clock(step)
    look_over()
    assert claim_next("two") is None

    Recorder(held.pk, held.fence).beat()
    pass_time(grace_s() + 1)
    look_over()

    assert claim_next("two") is None


@pytest.mark.parametrize("step", STEPS)
def test_a_dead_worker_is_found_a_moment_after_the_clock_was_set_forward(held: Run, step: timedelta) -> None:
    set_clock(step)
    look_over()
    pass_time(grace_s() + 1)

    adopted = claim_next("two")

    assert adopted is not None
    assert (adopted.pk, adopted.owner, adopted.doubted_at) == (held.pk, "two", None)


@pytest.mark.parametrize("step", STEPS)
def test_a_dead_worker_keeps_its_run_for_one_lease_after_the_clock_was_set_back(held: Run, step: timedelta) -> None:
    set_clock(-step)
    look_over()
    pass_time(settings.BENCHHUB_LEASE_S + 1)
    look_over()
    pass_time(grace_s() + 1)

    assert claim_next("two") is not None


@pytest.mark.parametrize("step", STEPS)
def test_a_doubt_of_the_future_is_raised_anew(held: Run, step: timedelta) -> None:
    pass_time(settings.BENCHHUB_LEASE_S + 1)
    look_over()
    set_clock(-step)
    look_over()
    pass_time(settings.BENCHHUB_LEASE_S + 1)
    look_over()
    pass_time(grace_s() + 1)

    assert lost_runs().filter(pk=held.pk).exists()


def test_a_heartbeat_between_the_look_and_the_claim_keeps_the_run(held: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    long_ago = Now() - timedelta(minutes=5)
    Run.objects.filter(pk=held.pk).update(lease_until=long_ago, doubted_at=long_ago)
    seen = list(dispatch._due("", None))
    assert [one.run_id for one in seen] == [held.pk]
    Recorder(held.pk, held.fence).beat()
    monkeypatch.setattr(dispatch, "_due", lambda *_: iter(seen))
    assert claim_next("two") is None


def test_a_worker_that_dies_is_missed_within_the_promise(held: Run) -> None:
    """Lease, a look every five seconds, and the doubt together."""
    tick_s = 5
    waited_s = 0
    while not lost_runs().exists():
        pass_time(tick_s)
        waited_s += tick_s
        look_over()
    assert waited_s <= 75


def test_a_run_that_was_handed_over_is_taken_at_once(held: Run) -> None:
    Recorder(held.pk, held.fence).let_go()

    adopted = claim_next("two")

    assert adopted is not None
    assert adopted.pk == held.pk
