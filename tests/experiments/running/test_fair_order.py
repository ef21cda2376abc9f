"""Whose run is next: urgency, teams that share the workers, members that share the hosts, and nobody for ever last."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Host, Member, Role, Run, Team
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.hosts.inventory import grant
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.priorities import change_priority
from tests.experiments.conftest import MakeMember

Queue = Callable[..., Run]


@pytest.fixture
def queue(admin: Member, stock: dict[str, Any], settings: Settings) -> Queue:
    """Queues a run of a member on hosts named by one letter each, without the ceremony of a launch."""
    settings.BENCHHUB_AGEING_H = 6
    hosts: dict[tuple[int, str], Host] = {}

    def host(team: Team, name: str) -> Host:
        if (team.pk, name) not in hosts:
            hosts[team.pk, name] = Host.objects.create(team=team, name=name, address="127.0.0.1", state="ready")
        return hosts[team.pk, name]

    def queue(member: Member = admin, pair: str = "ab", *, waited_h: float = 0, **more: Any) -> Run:
        sut, driver = (host(member.team, name) for name in pair)
        number = Run.objects.filter(team=member.team).count() + 1
        run = Run.objects.create(
            team=member.team, number=number, created_by=member.user, sut=sut, drivers=driver_set([driver]), **more
        )
        Run.objects.filter(pk=run.pk).update(queued_at=timezone.now() - timedelta(hours=waited_h))
        return run

    return queue


def order(*, finish: bool = True) -> list[Run]:
    """The runs in the order in which workers get them, each ended before the next claim when `finish`."""
    found = []
    while (run := claim_next("worker")) is not None:
        found.append(run)
        if finish:
            end(run)
    return found


def end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state="finished", finished_at=timezone.now())
    Host.objects.filter(leased_by=run).update(leased_by=None)


@pytest.mark.parametrize(
    "waiting, expected",
    [
        ([(0, 0), (1, 0), (-1, 0)], [2, 1, 3]),
        ([(0, 0), (0, 0), (1, 0), (1, 0)], [3, 4, 1, 2]),
        ([(-1, 7), (0, 0), (0, 8)], [3, 1, 2]),
        ([(-1, 13), (0, 0), (1, 0)], [1, 3, 2]),
        ([(-1, 19), (1, 0)], [1, 2]),
        ([(1, 0), (0, 5.9)], [1, 2]),
    ],
    ids=[
        "high, normal, low",
        "the older of equals",
        "six hours are one class",
        "twelve are two",
        "in the end nothing new passes it",
        "not before",
    ],
)
def test_the_more_urgent_goes_first_and_waiting_makes_urgent(
    queue: Queue, waiting: list[tuple[int, float]], expected: list[int]
) -> None:
    for priority, waited_h in waiting:
        queue(priority=priority, waited_h=waited_h)
    assert [run.number for run in order()] == expected


def test_a_team_with_many_runs_does_not_hold_up_the_first_run_of_another(queue: Queue, other_admin: Member) -> None:
    for letters in ("ab", "cd", "ef", "gh"):
        queue(pair=letters)
    queue(other_admin)
    queue(other_admin, "cd")
    teams = [run.team.slug for run in order(finish=False)]
    assert teams == ["perf", "others", "perf", "others", "perf", "perf"]


def test_teams_with_the_same_number_take_turns(queue: Queue, other_admin: Member) -> None:
    for _ in range(3):
        queue()
    for _ in range(3):
        queue(other_admin)
    assert [run.team.slug for run in order()] == ["perf", "others"] * 3


def test_no_team_gets_ahead_of_another_by_calling_its_runs_high_but_low_stands_back(
    queue: Queue, other_admin: Member, make_member: MakeMember
) -> None:
    quiet = make_member(Team.objects.create(slug="quiet", name="Quiet"))
    queue(quiet, priority=-1)
    for _ in range(3):
        queue(priority=1)
    for _ in range(2):
        queue(other_admin)
    assert [run.team.slug for run in order()] == ["perf", "others", "perf", "others", "perf", "quiet"]


def test_members_of_a_team_take_turns_on_a_host(queue: Queue, admin: Member, make_member: MakeMember) -> None:
    colleague = make_member(admin.team, Role.LAUNCHER)
    for _ in range(3):
        queue()
    queue(colleague)
    queue(colleague)
    assert [run.created_by == colleague.user for run in order()] == [False, True, False, True, False]


def test_a_member_who_runs_less_goes_first(queue: Queue, admin: Member, make_member: MakeMember) -> None:
    colleague = make_member(admin.team, Role.LAUNCHER)
    queue(colleague, "ab")
    queue(pair="cd")
    queue(pair="ef")
    for pair in ("ab", "cd"):
        queue(admin, pair)
    first = order(finish=False)
    assert [run.number for run in first] == [1, 2, 3]
    queue(colleague, "gh")
    queue(admin, "gh")
    end(first[1])
    assert [run.number for run in order(finish=False)] == [6, 5]  # two of ada's still run, one of the colleague's


def test_a_run_that_wants_two_hosts_is_not_passed_for_ever_by_members_who_run_less(
    queue: Queue, admin: Member, make_member: MakeMember
) -> None:
    colleague = make_member(admin.team, Role.LAUNCHER)
    queue(pair="ax", waited_h=1)
    queue(pair="ef", waited_h=1)
    holder, _ = order(finish=False)
    wide = queue(pair="ac", waited_h=7)  # a is taken, c is free, and its owner runs two already
    queue(colleague, "cd", priority=1, waited_h=0)
    queue(colleague, "gh")
    assert [run.number for run in order(finish=False)] == [4, 5]  # high goes first once
    end(Run.objects.get(number=4))
    Run.objects.filter(pk=wide.pk).update(queued_at=timezone.now() - timedelta(hours=13))
    queue(colleague, "cd", priority=1)
    assert order(finish=False) == []  # now it has grown more urgent, and keeps c
    end(holder)
    assert claim_next("worker") == wide


def test_a_claim_costs_the_same_queries_however_many_wait(queue: Queue, other_admin: Member) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert claim_next("worker") is not None
        return len([query for query in captured if "SAVEPOINT" not in str(query["sql"])])

    queue()
    queue(other_admin)
    few = queries()
    for _ in range(40):
        queue()
        queue(other_admin)
    assert queries() <= max(few, 7)


def test_the_priority_of_a_waiting_run_is_changed_and_audited(
    queue: Queue, admin: Member, make_member: MakeMember
) -> None:
    launcher, viewer = make_member(admin.team, Role.LAUNCHER), make_member(admin.team, Role.VIEWER)
    run = queue()
    change_priority(launcher, run, Run.Priority.LOW)
    change_priority(admin, run, Run.Priority.HIGH)
    assert run.priority == 1
    entries = AuditEntry.objects.filter(action="run.priority").order_by("id").values_list("before", "after")
    assert list(entries) == [
        ({"priority": "normal"}, {"priority": "low"}),
        ({"priority": "low"}, {"priority": "high"}),
    ]
    with pytest.raises(Forbidden) as caught:
        change_priority(launcher, run, Run.Priority.HIGH)
    assert (caught.value.field, "editor" in caught.value.message) == ("priority", True)
    with pytest.raises(Forbidden):
        change_priority(viewer, run, Run.Priority.LOW)
    with pytest.raises(RequestError):
        change_priority(admin, run, 7)
    claim_next("worker")
    with pytest.raises(Conflict, match="does not wait any more"):
        change_priority(admin, run, Run.Priority.LOW)


def test_a_launcher_may_not_launch_with_high_priority(
    admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER)
    for host in (stock["sut"], stock["drivers"][0]):
        grant(admin, host, launcher)
    with pytest.raises(Forbidden) as caught:
        launch_run(launcher, Choice(**stock), priority=Run.Priority.HIGH)
    assert caught.value.field == "priority"
    assert launch_run(launcher, Choice(**stock), priority=Run.Priority.LOW).priority == -1
    assert launch_run(admin, Choice(**stock), priority=Run.Priority.HIGH).priority == 1
