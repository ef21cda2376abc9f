"""The queue on PostgreSQL: hosts leased all or none, a fair order, lost runs adopted, fences that only grow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.base.errors import HostInUse
from agents.events import Role as RunRole
from agents.facts.access import Access
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Host, Member, Role, Run
from experiments.registry.errors import Conflict
from experiments.registry.hosts import machines
from experiments.registry.hosts.machines import recognise
from experiments.registry.hosts.reservations import end, reserve
from experiments.running.ending.conclusion import conclude
from experiments.running.executing.admission import admit, put_back
from experiments.running.executing.recorder import Recorder
from experiments.running.queue import dispatch
from experiments.running.queue.dispatch import claim_next, something_to_do
from tests.experiments.conftest import MakeMember, ready_host
from tests.experiments.finished import whole_run

DEAD = {"lease_until": Now() - timedelta(minutes=1), "doubted_at": Now() - timedelta(minutes=1)}
"""Of a run whose worker has been silent for long."""


@pytest.fixture
def launch(admin: Member, stock: dict[str, Any]) -> Any:
    """Queues a run on hosts named by one letter each; they are made when they are first named."""
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}
    made: dict[str, Host] = {}

    def host(name: str) -> Host:
        if name not in made:
            made[name] = ready_host(admin, name)
        return made[name]

    def launch(sut: str, *drivers: str) -> Run:
        return launch_run(admin, Choice(**documents, sut=host(sut), drivers=[host(name) for name in drivers]))

    return launch


def claim() -> int | None:
    """The number of the run that a worker gets now."""
    run = claim_next("worker")
    return run.number if run else None


def finish(number: int) -> None:
    run = Run.objects.get(number=number)
    conclude(run.pk, run.fence, Recorder(run.pk, run.fence).record())


def leased() -> dict[str, int]:
    return {host.name: host.leased_by.number for host in Host.objects.select_related("leased_by") if host.leased_by}


def test_a_run_gets_all_its_hosts_or_none(launch: Any) -> None:
    launch("a", "b")
    launch("b", "c")
    launch("d", "e")
    assert claim() == 1
    assert leased() == {"a": 1, "b": 1}
    assert claim() == 3
    assert leased() == {"a": 1, "b": 1, "d": 3, "e": 3}
    assert claim() is None
    finish(1)
    assert claim() == 2
    assert leased() == {"b": 2, "c": 2, "d": 3, "e": 3}


def test_a_run_that_waits_for_two_hosts_is_not_overtaken(launch: Any) -> None:
    launch("a", "b")
    launch("a", "c")  # waits for a, and keeps c
    launch("c", "d")
    assert claim() == 1
    assert claim() is None
    assert not something_to_do()
    finish(1)
    assert something_to_do()
    assert claim() == 2
    assert claim() is None


def test_a_run_with_several_driver_hosts_waits_for_all_of_them_and_holds_them_together(launch: Any) -> None:
    launch("x", "c")
    launch("a", "c", "d")
    launch("y", "d")
    assert claim() == 1
    assert (claim(), leased()) == (None, {"x": 1, "c": 1}), "the wide run is not overtaken, and holds nothing yet"
    finish(1)
    assert claim() == 2
    assert leased() == {"a": 2, "c": 2, "d": 2}
    assert claim() is None
    finish(2)
    assert claim() == 3


@pytest.fixture
def one_machine() -> Any:
    """Makes hosts, named by one letter each, known as one machine."""

    def one_machine(names: str) -> None:
        for name in names:
            recognise(Host.objects.get(name=name).pk, Access("bench", boot_id=f"boot of {names}"))

    return one_machine


def test_hosts_that_are_one_machine_are_used_by_one_run_at_a_time(launch: Any, one_machine: Any) -> None:
    for pair in ("ab", "cd", "ce", "fb"):
        launch(*pair)
    one_machine("ac")
    assert (claim(), claim(), leased()) == (1, None, {"a": 1, "b": 1})
    finish(1)
    assert claim() == 2
    assert claim() == 4, "the third waits for the machine of a, which the second has as c"


def test_one_run_may_use_a_machine_under_both_of_its_names(launch: Any, one_machine: Any) -> None:
    launch("a", "b")
    launch("b", "c")
    one_machine("ab")
    assert (claim(), claim(), leased()) == (1, None, {"a": 1, "b": 1})


def test_a_host_that_is_dirty_keeps_runs_from_the_others_of_its_machine(launch: Any, one_machine: Any) -> None:
    launch("a", "b")
    launch("c", "d")
    launch("e", "a")
    launch("f", "g")
    one_machine("ac")
    Host.objects.filter(name="c").update(state="dirty")
    assert (claim(), claim()) == (4, None)
    Host.objects.filter(name="c").update(state="ready")
    assert claim() == 1


def test_a_reservation_holds_the_machine_under_each_of_its_names(
    admin: Member, make_member: MakeMember, launch: Any, one_machine: Any
) -> None:
    launch("a", "b")
    launch("c", "b")
    one_machine("ac")
    anna = make_member(admin.team, Role.ADMIN, "anna")
    made = reserve(anna, [Host.objects.get(name="c")], until=timezone.now() + timedelta(hours=1))
    assert claim() is None
    with pytest.raises(Conflict, match="a is the same machine as c, which is reserved by anna until"):
        reserve(admin, [Host.objects.get(name="a")], until=timezone.now() + timedelta(minutes=5))
    end(anna, made)
    assert claim() == 1


def test_who_shows_nothing_new_is_admitted_without_the_lock_and_refused_as_ever(
    launch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch("a", "b")
    launch("c", "d")
    assert claim() == 1
    first, second = Run.objects.order_by("number")
    shown: dict[RunRole, Access] = {"sut": Access("bench", boot_id="x")}
    admit(first, shown)
    recognise(Host.objects.get(name="c").pk, Access("bench", boot_id="x"))
    monkeypatch.setattr(machines, "lock_machines", lambda: pytest.fail("nothing is to be learned"))
    admit(first, shown)
    Host.objects.filter(name="c").update(leased_by=second)
    with pytest.raises(HostInUse, match="a is the same machine as c, which run #2 uses"):
        admit(first, shown)


def test_of_two_runs_that_find_each_other_on_one_machine_the_later_one_waits_again(launch: Any) -> None:
    launch("a", "b")
    launch("c", "d")
    assert (claim(), claim()) == (1, 2)
    first, second = Run.objects.order_by("number")
    shown: dict[RunRole, Access] = {"sut": Access("bench", boot_id="x")}
    Recorder(second.pk, second.fence).store(whole_run()[0])
    admit(first, shown)
    with pytest.raises(HostInUse, match="c is the same machine as a, which run #1 uses"):
        admit(second, shown)
    put_back(second.pk, second.fence)
    second.refresh_from_db()
    assert (second.state, second.owner, second.started_at, second.attempts) == ("queued", "", None, 0)
    assert not second.events.exists()
    assert leased() == {"a": 1, "b": 1}
    assert claim() is None
    finish(1)
    assert claim() == 2


def test_a_run_that_was_cancelled_is_not_put_back_but_ended_by_who_takes_it_up(admin: Member, launch: Any) -> None:
    run = launch("a", "b")
    held = claim_next("worker")
    assert held is not None
    cancel_run(admin, run)
    put_back(run.pk, held.fence)
    run.refresh_from_db()
    assert (run.state, run.owner) == ("preparing", "")
    assert leased() == {"a": 1, "b": 1}


def test_the_claim_asks_as_often_however_many_hosts_are_one_machine(launch: Any, one_machine: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            something_to_do()
        return len(captured)

    launch("a", "b")
    launch("c", "d")
    few = queries()
    for pair in ("ef", "gh", "ij"):
        launch(*pair)
    one_machine("acegi")
    assert queries() == few


@pytest.mark.parametrize("away", ["c", "d"])
def test_one_driver_host_out_of_service_keeps_the_run_waiting_and_holds_up_nobody(launch: Any, away: str) -> None:
    launch("a", "c", "d")
    launch("e", "b")
    Host.objects.filter(name=away).update(state="drained")
    assert claim() == 2
    assert claim() is None


def test_a_second_driver_host_reserved_by_somebody_else_keeps_the_run_waiting(
    admin: Member, make_member: MakeMember, launch: Any
) -> None:
    launch("a", "b", "c")
    other = make_member(admin.team, Role.ADMIN, "anna")
    reserve(other, [Host.objects.get(name="c")], until=timezone.now() + timedelta(hours=1))
    assert claim() is None
    assert launch("a", "b").number == claim()


def test_the_oldest_goes_first(launch: Any) -> None:
    for _ in range(3):
        launch("a", "b")
    order = []
    while (number := claim()) is not None:
        order.append(number)
        finish(number)
    assert order == [1, 2, 3]


@pytest.mark.parametrize("state", ["dirty", "unreachable", "drained", "new"])
def test_a_host_out_of_service_gets_no_run_and_its_run_holds_up_nobody(launch: Any, state: str) -> None:
    launch("a", "b")
    launch("c", "b")
    Host.objects.filter(name="a").update(state=state, state_reason="because")
    assert claim() == 2
    finish(2)
    assert claim() is None
    Host.objects.filter(name="a").update(state="ready")
    assert claim() == 1


def test_a_run_whose_lease_is_over_is_adopted_before_anything_new_starts(launch: Any) -> None:
    first = launch("a", "b")
    launch("c", "d")
    held = claim_next("worker 1")
    assert held is not None
    assert claim() == 2
    assert claim() is None
    Run.objects.filter(pk=first.pk).update(**DEAD, state="measuring")
    launch("e", "f")
    adopted = claim_next("worker 2")
    assert adopted is not None
    assert (adopted.number, adopted.owner, adopted.state, adopted.attempts) == (1, "worker 2", "measuring", 2)
    assert adopted.fence > held.fence
    assert adopted.started_at == held.started_at
    assert leased()["a"] == leased()["b"] == 1
    assert claim() == 3


def test_a_run_that_is_let_go_is_taken_at_once(launch: Any) -> None:
    launch("a", "b")
    run = claim_next("worker 1")
    assert run is not None
    assert not something_to_do()
    Recorder(run.pk, run.fence).let_go()
    assert something_to_do()
    assert claim() == 1


def test_a_claim_says_whether_another_run_was_due(launch: Any) -> None:
    for pair in ("ab", "cd", "bc", "ef"):
        launch(*pair)
    told = []
    while (found := dispatch.claim("worker")) is not None:
        told.append((found.run.number, found.more_due))
    assert told == [(1, True), (2, True), (4, False)], "the third one wants hosts of the first two"
    Run.objects.filter(number__in=[1, 2]).update(**DEAD)
    again = [dispatch.claim("worker") for _ in range(3)]
    assert [(one.run.number, one.more_due) for one in again if one] == [(1, True), (2, False)]


def test_fences_only_grow(launch: Any) -> None:
    for name in "abcd":
        launch(name, f"{name}2")
    fences = []
    for _ in range(3):
        while (run := claim_next("w")) is not None:
            fences.append(run.fence)
        Run.objects.update(**DEAD)
        fences += [run.fence for _ in range(2) if (run := claim_next("w")) is not None]
    assert fences == sorted(set(fences))
    assert len(fences) >= 10


def test_a_cancelled_run_leaves_the_queue(admin: Member, launch: Any) -> None:
    run = launch("a", "b")
    launch("a", "b")
    cancel_run(admin, run)
    assert claim() == 2


def test_the_same_moment_gives_each_host_to_one_run_only(transactional_db: None, launch: Any) -> None:
    runs = [launch(*pair) for pair in ("ab", "bc", "ca", "ab", "de", "ed")]
    claimed: list[int] = []
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        try:
            if (run := claim_next(threading.current_thread().name)) is not None:
                claimed.append(run.number)
        finally:
            connection.close()

    _together([threading.Thread(target=work) for _ in range(6)])
    assert sorted(claimed) == [runs[0].number, runs[4].number]
    assert leased() == {"a": 1, "b": 1, "d": 5, "e": 5}
    fences = list(Run.objects.filter(fence__gt=0).values_list("fence", flat=True))
    assert len(set(fences)) == 2


def _together(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)


def test_events_of_a_former_holder_are_refused(launch: Any) -> None:
    from agents.base.errors import FenceError

    launch("a", "b")
    old = claim_next("worker 1")
    assert old is not None
    Run.objects.update(**DEAD)
    assert claim_next("worker 2") is not None
    stale = Recorder(old.pk, old.fence)
    for action in (
        lambda: stale.store(whole_run()[0]),
        stale.beat,
        lambda: conclude(old.pk, old.fence, stale.record()),
    ):
        with pytest.raises(FenceError):
            action()
    stale.let_go()
    assert Run.objects.get(pk=old.pk).owner == "worker 2"
    assert not Run.objects.get(pk=old.pk).events.exists()
