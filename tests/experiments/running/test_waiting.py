"""Why a run waits, in one sentence for each cause, and when it may be expected to start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.facts.access import Access
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Host, Member, Role, Run, Worker
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.machines import recognise
from experiments.registry.hosts.reservations import reserve
from experiments.running.queue import waiting
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.plan import Expected
from experiments.running.queue.waiting import (
    active_of,
    expected_at_launch,
    expected_end,
    expected_of,
    schedule_and_count,
    schedule_of,
    schedule_up_to,
)
from tests.experiments.asking.test_retries import grant_all
from tests.experiments.conftest import MakeMember, ready_host

Launch = Callable[..., Run]
RUN_S = 20  # 10 s of load, and what a run takes beside it on a host without a past


@pytest.fixture(autouse=True)
def clock(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time stands still, in queries as well: a slow machine changes no expectation.

    It is that of the test's transaction; what asks for the time of a statement gets it, too.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        ((now,),) = cursor.fetchall()
    monkeypatch.setattr(timezone, "now", lambda: now)
    real = database_now  # this module has it as well
    for module in list(sys.modules.values()):
        if getattr(module, "database_now", None) is real:
            monkeypatch.setattr(module, "database_now", lambda: now)
    monkeypatch.setattr(Now, "as_postgresql", Now.as_sql)


@pytest.fixture
def launch(admin: Member, stock: dict[str, Any]) -> Launch:
    """Queues a run of 10 s of load on hosts named by one letter each."""
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}
    made: dict[str, Host] = {}

    def launch(pair: str = "ab", member: Member = admin, **more: Any) -> Run:
        for name in pair:
            if name not in made:
                made[name] = ready_host(admin, name)
        return launch_run(
            member, Choice(**documents, sut=made[pair[0]], drivers=[made[name] for name in pair[1:]]), **more
        )

    return launch


def waits(run: Run) -> Expected:
    found = expected_of(Run.objects.get(pk=run.pk))
    assert found is not None
    return found


def starts_in_s(run: Run) -> float | None:
    """Seconds until it starts, to 5 s; None when that is not foreseen."""
    schedule = schedule_of(run.team)
    found = schedule.of(run.pk)
    assert found is not None
    return None if found.starts_at is None else round((found.starts_at - schedule.at).total_seconds() / 5) * 5


def seen(slots: int = 1, ago_s: float = 0, queue: str = "runs", name: str = "w") -> None:
    at = timezone.now() - timedelta(seconds=ago_s)
    Worker.objects.create(name=name, process=name, queues=[queue], slots=slots, version="1", started_at=at, seen_at=at)


def test_a_run_before_it_on_two_of_its_hosts_counts_once(launch: Launch) -> None:
    launch("ab")
    launch("cd")
    launch("ef")
    wide = waits(launch("abd"))
    assert (wide.runs_before, wide.reason) == (2, "Run #1 is before it on a.")


def test_a_run_that_nothing_keeps_is_next(launch: Launch) -> None:
    run = launch()
    assert (waits(run).reason, waits(run).runs_before, starts_in_s(run)) == ("It is next.", 0, 0)


def test_a_host_in_use_and_the_runs_before_it_are_named_and_counted(launch: Launch) -> None:
    _, second, third, free, last = (launch(pair) for pair in ("ab", "ac", "cd", "ef", "fa"))
    claim_next("worker")
    said = {run.number: (waits(run).reason, waits(run).runs_before, starts_in_s(run)) for run in (second, third, free)}
    assert said == {
        2: ("a is used by run #1.", 1, RUN_S),
        3: ("Run #2 is before it on c.", 1, 2 * RUN_S),
        4: ("It is next.", 0, 0),
    }
    assert (waits(last).runs_before, starts_in_s(last)) == (3, 2 * RUN_S)
    assert expected_of(Run.objects.get(number=1)) is None


@pytest.mark.parametrize(
    "fields, sentence",
    [
        (
            {"state": "dirty", "state_reason": "Run #7 could not be proven undone: x is 1"},
            "a is dirty: Run #7 could not be proven undone. Put it right on the host's page.",
        ),
        (
            {"state": "unreachable", "state_reason": "No route to host."},
            "a is unreachable: No route to host. Test its connection on the host's page when it is back.",
        ),
        (
            {"state": "drained", "state_reason": "Drained by ada."},
            "a is drained: Drained by ada. An editor takes it back into service.",
        ),
        (
            {"state": "new"},
            "a has no approved host key; an editor approves it on the host's page.",
        ),
        (
            {"state": "new", "offered_host_key": "ssh-ed25519 AAAA"},
            "a has shown a key that nobody has approved; an editor approves it on the host's page.",
        ),
    ],
    ids=["dirty", "unreachable", "drained", "new", "key shown"],
)
def test_a_host_that_a_person_must_put_right_says_what_to_do_and_has_no_time(
    launch: Launch, fields: dict[str, str], sentence: str
) -> None:
    blocked, behind = launch("ab"), launch("cb")
    Host.objects.filter(name="a").update(**fields)
    assert (waits(blocked).reason, starts_in_s(blocked)) == (sentence, None)
    assert (waits(behind).reason, starts_in_s(behind)) == ("It is next.", 0)


def test_a_host_that_is_being_drained_names_the_run_that_ends_first(launch: Launch) -> None:
    launch("ab")
    second = launch("ab")
    claim_next("worker")
    Host.objects.filter(name="a").update(state="drained")
    assert waits(second).reason == "a is drained; run #1 on it ends first. An editor takes it back into service."


def one_machine(*names: str) -> None:
    for name in names:
        recognise(Host.objects.get(name=name).pk, Access("bench", boot_id="x"))


def test_a_machine_in_use_under_another_name_is_named_and_waited_for(launch: Launch) -> None:
    _, second, third, free = (launch(pair) for pair in ("ab", "cd", "ce", "fg"))
    one_machine("a", "c")
    claim_next("worker")
    said = {run.number: (waits(run).reason, waits(run).runs_before, starts_in_s(run)) for run in (second, third, free)}
    assert said == {
        2: ("c is the same machine as a, which run #1 uses.", 1, RUN_S),
        3: ("c is the same machine as a, which run #1 uses.", 2, 2 * RUN_S),
        4: ("It is next.", 0, 0),
    }


def test_a_machine_that_another_team_uses_is_told_without_their_names(
    launch: Launch, other_admin: Member, make_member: MakeMember
) -> None:
    run = launch("ab")
    theirs = ready_host(other_admin, "secret")
    one_machine("a", "secret")
    active = Run.objects.create(team=other_admin.team, number=7, state="measuring", sut=theirs)
    Host.objects.filter(pk=theirs.pk).update(leased_by=active)
    assert waits(run).reason == "a is the same machine as a host of another team, which a run of that team uses."
    Host.objects.filter(pk=theirs.pk).update(leased_by=None, state="dirty", state_reason="secret")
    assert waits(run).reason == (
        "a is the same machine as a host of another team, which is dirty. That team has to put it right."
    )
    assert starts_in_s(run) is None


def test_a_reservation_is_named_and_its_end_is_when_the_run_starts(
    launch: Launch, admin: Member, make_member: MakeMember
) -> None:
    run, other = launch("ab"), launch("cb")
    anna = make_member(admin.team, Role.LAUNCHER, "anna")
    grant_all(admin, anna)
    until = timezone.now() + timedelta(minutes=30)
    reserve(anna, [Host.objects.get(name="a")], until=until, reason="profiling")
    assert waits(run).reason.startswith("a is reserved by anna until ")
    assert waits(run).reason.endswith(" UTC (profiling).")
    assert starts_in_s(run) == 1800
    assert (waits(other).reason, starts_in_s(other)) == ("It is next.", 0)
    mine = launch("ab", anna)
    assert starts_in_s(mine) == RUN_S  # behind the other one on b, not behind the reservation


def test_a_reservation_to_come_moves_what_would_start_inside_it(
    launch: Launch, admin: Member, make_member: MakeMember
) -> None:
    first, second = launch("ab"), launch("ab")
    anna = make_member(admin.team, Role.LAUNCHER, "anna")
    grant_all(admin, anna)
    begins = timezone.now() + timedelta(seconds=10)
    reserve(anna, [Host.objects.get(name="b")], starts_at=begins, until=begins + timedelta(hours=1))
    assert (starts_in_s(first), starts_in_s(second)) == (0, 3610)


@pytest.mark.parametrize(
    "workers, active, reason, starts",
    [
        ([], 1, "It is next.", 0),
        ([{"slots": 0}], 1, "It is next.", 0),
        ([{"slots": 1, "queue": "default"}], 1, "It is next.", 0),
        ([{"slots": 2}], 1, "It is next.", 0),
        ([{"slots": 1}], 1, "The only worker slot is busy.", RUN_S),
        ([{"slots": 1}, {"slots": 1, "name": "v"}], 2, "All 2 worker slots are busy.", RUN_S),
        ([{"slots": 1}, {"slots": 4, "name": "v", "ago_s": 130}], 1, "The only worker slot is busy.", RUN_S),
        (
            [{"slots": 4, "ago_s": 300}],
            0,
            "No worker has been seen for 5 min; an operator must start one (worker-runs).",
            None,
        ),
    ],
    ids=["unknown", "no slots said", "another queue", "free", "busy", "two busy", "a silent one", "all silent"],
)
def test_a_run_that_no_worker_takes_says_so(
    launch: Launch, workers: list[dict[str, Any]], active: int, reason: str, starts: int | None
) -> None:
    for pair in ("ab", "cd")[:active]:
        launch(pair)
        claim_next("worker")
    run = launch("ef")
    for worker in workers:
        seen(**worker)
    assert (waits(run).reason, starts_in_s(run)) == (reason, starts)


def test_another_teams_turn_is_said_without_saying_whose(
    launch: Launch, other_admin: Member, stock: dict[str, Any]
) -> None:
    launch("ab")
    claim_next("worker")
    run = launch("cd")
    Run.objects.create(team=other_admin.team, number=1)
    seen(slots=1)
    assert waits(run).reason == "The only worker slot is busy, and it is another team’s turn."


def test_the_time_beside_the_load_is_what_the_last_runs_on_the_host_took(launch: Launch) -> None:
    for beside_s in (30, 50, 400):
        run = launch()
        started = timezone.now() - timedelta(hours=1)
        Run.objects.filter(pk=run.pk).update(
            state="finished",
            outcome="succeeded",
            started_at=started,
            finished_at=started + timedelta(seconds=10 + beside_s),
        )
    failed = launch()
    Run.objects.filter(pk=failed.pk).update(
        state="finished", outcome="failed", started_at=timezone.now(), finished_at=timezone.now()
    )
    assert waits(launch()).takes_s == 60
    assert waits(launch("cd")).takes_s == RUN_S


def test_an_active_run_has_left_what_it_has_not_done_yet(launch: Launch) -> None:
    launch()
    second = launch()
    claim_next("worker")
    for done_s, left_s in ((5, 15), (20, 0), (500, 0)):
        Run.objects.filter(number=1).update(started_at=timezone.now() - timedelta(seconds=done_s))
        assert starts_in_s(second) == left_s


def test_members_are_expected_to_take_turns_and_the_urgent_go_first(
    launch: Launch, admin: Member, make_member: MakeMember
) -> None:
    anna = make_member(admin.team, Role.EDITOR, "anna")
    runs = [launch(), launch(), launch()]
    grant_all(admin, anna)
    runs += [launch("ab", anna), launch("ab", anna), launch("ab", anna, priority=Run.Priority.HIGH)]
    schedule = schedule_of(admin.team)
    numbers = {run.pk: run.number for run in runs}
    assert [numbers[one.run_id] for one in schedule.waiting] == [6, 1, 4, 2, 5, 3]
    assert [one.place for one in schedule.waiting] == [1, 2, 3, 4, 5, 6]


def test_the_head_of_a_queue_is_expected_like_the_whole_of_it(launch: Launch, admin: Member) -> None:
    for pair in ("ab", "cd", "ab", "ab", "cd"):
        launch(pair)
    claim_next("worker")
    (head, count), whole = schedule_and_count(admin.team, 2), schedule_of(admin.team)
    assert (len(head.waiting), count) == (2, 4)

    def said(one: Expected, at: datetime) -> tuple[object, ...]:
        starts_at = one.starts_at and round((one.starts_at - at).total_seconds())
        return one.run_id, one.place, one.reason, one.runs_before, starts_at

    assert [said(one, head.at) for one in head.waiting] == [said(one, whole.at) for one in whole.waiting[:2]]
    assert [one.run_id for one in head.active] == [one.run_id for one in whole.active]


def test_a_queue_is_thought_through_up_to_the_run_that_is_asked_about(launch: Launch, admin: Member) -> None:
    runs = [launch(pair) for pair in ("ab", "cd", "ab", "ab", "cd")]
    claim_next("worker")
    whole = schedule_of(admin.team)
    for run in runs[1:]:
        there = whole.of(run.pk)
        assert there is not None
        assert waits(run) == there
        assert schedule_up_to(admin.team, [run.pk]).waiting == whole.waiting[: there.place]
    assert schedule_up_to(admin.team, [runs[0].pk]).waiting == ()
    ends = [expected_end(admin.team, [run]) for run in runs]
    assert ends == [found.ends_at for run in runs if (found := whole.of(run.pk))]


def test_a_launch_behind_many_others_says_what_keeps_the_run_now_and_no_time(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "FORESEEN", 3)
    launch("ab")
    claim_next("worker")
    launch("ac", priority=Run.Priority.LOW)
    launch("ad")
    few = launch("ef")
    assert expected_at_launch(few) == waits(few)
    shared, free = launch("da"), launch("gh")

    def said(run: Run) -> tuple[str, int, datetime | None]:
        found = expected_at_launch(run)
        assert found is not None
        return found.reason, found.runs_before, found.starts_at

    assert said(shared) == ("a is used by run #1.", 2, None)
    assert said(free) == ("4 other runs of the team wait, too.", 0, None)
    Host.objects.filter(name="g").update(state="dirty")
    assert said(free) == (waits(free).reason, 0, None)
    seen(ago_s=300)
    assert said(shared) == ("a is used by run #1.", 2, None)


def test_what_is_expected_of_active_runs_does_not_need_the_queue_behind_them(launch: Launch, admin: Member) -> None:
    runs = [launch(pair) for pair in ("ab", "cd", "ab")]
    for _ in range(2):
        claim_next("worker")
    active, whole = active_of(runs), schedule_of(admin.team)
    assert [(one.run_id, one.ends_at) for one in active.active] == [(one.run_id, one.ends_at) for one in whole.active]
    assert len(active.active) == 2
    assert active.waiting == ()


def test_an_experiment_ends_when_its_last_run_does(launch: Launch) -> None:
    runs = [launch(), launch(), launch("cd")]

    def ends_in_s() -> float | None:
        end: datetime | None = expected_end(runs[0].team, runs)
        return None if end is None else round((end - timezone.now()).total_seconds() / 5) * 5

    assert ends_in_s() == 2 * RUN_S
    Host.objects.filter(name="c").update(state="dirty")
    assert ends_in_s() is None
    assert expected_end(runs[0].team, []) is None


def test_the_whole_queue_is_read_in_the_same_number_of_queries(launch: Launch, admin: Member) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            schedule_of(admin.team)
        return len(captured)

    launch("ab")
    few = queries()
    for pair in ("ab", "cd", "ef") * 4:
        launch(pair)
    claim_next("worker")
    assert queries() <= few <= 13
