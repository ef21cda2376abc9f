"""A person keeps hosts for a while: only their runs start there, and it ends by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import AuditEntry, Host, Member, Reservation, Role, Run
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.reservations import clock, current, end, extend, holding_now, reserve
from experiments.running.queue.dispatch import claim_next, something_to_do
from experiments.running.queue.waiting import expected_of
from tests.experiments.asking.test_retries import grant_all
from tests.experiments.conftest import MakeMember

HOUR = timedelta(hours=1)


def later(hours: float) -> Any:
    return timezone.now() + hours * HOUR


@pytest.fixture
def anna(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> Member:
    """A launcher who may use the hosts."""
    member = make_member(admin.team, Role.LAUNCHER, "anna")
    grant_all(admin, member)
    return member


@pytest.fixture
def sut(stock: dict[str, Any]) -> Host:
    host: Host = stock["sut"]
    return host


@pytest.mark.parametrize("name", ["sut-1", "driver-1"])
def test_only_the_members_runs_start_while_it_holds(
    admin: Member, anna: Member, stock: dict[str, Any], name: str
) -> None:
    reserve(anna, [Host.objects.get(name=name)], until=later(1))
    launch_run(admin, Choice(**stock))
    assert not something_to_do()
    mine = launch_run(anna, Choice(**stock))
    assert claim_next("worker") == mine


def test_a_run_whose_person_is_gone_waits_too(admin: Member, anna: Member, stock: dict[str, Any], sut: Host) -> None:
    run = launch_run(admin, Choice(**stock))
    Run.objects.update(created_by=None)
    reserve(anna, [sut], until=later(1))
    assert not something_to_do()
    found = expected_of(Run.objects.get(pk=run.pk))
    assert found is not None
    assert "reserved by anna" in found.reason
    Reservation.objects.all().delete()
    assert something_to_do()


def test_runs_of_the_members_experiment_start_too(anna: Member, stock: dict[str, Any]) -> None:
    reserve(anna, [stock["sut"], stock["drivers"][0]], until=later(1))
    parts = {name: stock[name] for name in ("application", "recipe", "sut", "drivers")}
    made = create_experiment(
        anna, name="q", workload=stock["workload"], candidates=[Candidate("a", **parts)], repetitions=1
    )
    (run,) = launch_experiment(anna, made)
    assert claim_next("worker") == run


def test_it_counts_from_its_beginning_to_its_end_and_needs_nobody_to_end_it(
    admin: Member, anna: Member, stock: dict[str, Any], sut: Host
) -> None:
    made = reserve(anna, [sut], starts_at=later(1), until=later(2), reason=" profiling ")
    assert (holding_now([sut]), list(current(admin.team))) == ({}, [made])
    launch_run(admin, Choice(**stock))
    launch_run(admin, Choice(**stock))
    run = claim_next("worker")  # before it begins
    assert run is not None
    Reservation.objects.update(starts_at=later(-1))
    assert holding_now([sut])[sut.pk].words == f"anna until {clock(made.until)} (profiling)"
    run.refresh_from_db()
    assert run.is_live  # what is active goes on
    Host.objects.update(leased_by=None)
    assert claim_next("worker") is None
    Reservation.objects.update(until=timezone.now())
    assert (holding_now([sut]), list(current(admin.team))) == ({}, [])
    assert claim_next("worker") is not None


@pytest.mark.parametrize(
    "begins, ends, clashes",
    [(0, 1, True), (1.5, 4, True), (1.5, 1.6, True), (0, 9, True), (0, 0.9, False), (2.1, 3, False)],
)
def test_an_overlap_is_refused_with_who_has_it_until_when(
    admin: Member, anna: Member, sut: Host, begins: float, ends: float, clashes: bool
) -> None:
    reserve(anna, [sut], starts_at=later(1), until=later(2), reason="profiling")
    asked: Callable[[], Reservation] = lambda: reserve(admin, [sut], starts_at=later(begins), until=later(ends))  # noqa: E731
    if not clashes:
        assert asked().member == admin
        return
    with pytest.raises(Conflict, match=r"sut-1 is reserved from .* by anna until .* \(profiling\)\."):
        asked()
    assert Reservation.objects.count() == 1


def test_one_may_reserve_again_what_one_has(anna: Member, sut: Host) -> None:
    for _ in range(2):
        reserve(anna, [sut], until=later(1))
    assert Reservation.objects.count() == 2


@pytest.mark.parametrize(
    "begins, ends, reason, field",
    [
        (0, -1, "", "until"),
        (2, 1, "", "until"),
        (0, 49, "", "until"),
        (49, 50, "", "starts_at"),
        (0, 1, "two\nlines", "reason"),
        (0, 1, "x" * 201, "reason"),
    ],
)
def test_a_reservation_that_cannot_be_names_the_field(
    anna: Member, sut: Host, settings: Settings, begins: float, ends: float, reason: str, field: str
) -> None:
    settings.BENCHHUB_RESERVATION_DAYS = 2
    with pytest.raises(RequestError) as caught:
        reserve(anna, [sut], starts_at=later(begins), until=later(ends), reason=reason)
    assert caught.value.field == field
    with pytest.raises(RequestError) as caught:
        reserve(anna, [], until=later(1))
    assert caught.value.field == "hosts"
    assert not Reservation.objects.exists()


def test_it_needs_the_right_to_launch_on_each_host(
    admin: Member, anna: Member, stock: dict[str, Any], make_member: MakeMember, other_admin: Member
) -> None:
    stock["drivers"][0].grants.all().delete()
    with pytest.raises(Forbidden, match="driver-1"):
        reserve(anna, [stock["sut"], stock["drivers"][0]], until=later(1))
    with pytest.raises(Forbidden):
        reserve(make_member(admin.team, Role.VIEWER), [stock["sut"]], until=later(1))
    with pytest.raises(RequestError, match="team"):
        reserve(other_admin, [stock["sut"]], until=later(1))
    assert not Reservation.objects.exists()


def test_its_end_is_moved_by_its_member_alone_and_not_into_somebody_elses(
    admin: Member, anna: Member, sut: Host, settings: Settings
) -> None:
    made = reserve(anna, [sut], until=later(1))
    reserve(admin, [sut], starts_at=later(3), until=later(4))
    extend(anna, made, later(2))
    assert made.until > later(1.9)
    with pytest.raises(Conflict, match=r"sut-1 is reserved from .* by ada"):
        extend(anna, made, later(3.5))
    with pytest.raises(RequestError, match="in the past"):
        extend(anna, made, timezone.now() - timedelta(microseconds=1) if made.starts_at < timezone.now() else later(-1))
    with pytest.raises(Forbidden, match="anna's"):
        extend(admin, made, later(2))
    settings.BENCHHUB_RESERVATION_DAYS = 1
    with pytest.raises(RequestError, match="at most 1 days"):
        extend(anna, made, later(25))


def test_it_is_ended_by_its_member_or_an_admin_and_the_audit_says_who(
    admin: Member, anna: Member, stock: dict[str, Any], sut: Host, make_member: MakeMember
) -> None:
    first, second = reserve(anna, [sut], until=later(1)), reserve(anna, [sut], starts_at=later(2), until=later(3))
    bert = make_member(admin.team, Role.EDITOR, "bert")
    with pytest.raises(Forbidden):
        end(bert, first)
    end(admin, first)
    assert holding_now([sut]) == {}
    end(anna, second)
    assert not current(admin.team).exists()
    with pytest.raises(Conflict, match="over"):
        end(anna, second)
    with pytest.raises(Conflict, match="over"):
        extend(anna, first, later(1))
    entries = AuditEntry.objects.filter(action__startswith="reservation.").order_by("id")
    assert [(entry.action, str(entry.actor), entry.subject) for entry in entries] == [
        ("reservation.make", "anna", "reservation of sut-1"),
        ("reservation.make", "anna", "reservation of sut-1"),
        ("reservation.end", "ada", "reservation of sut-1"),
        ("reservation.end", "anna", "reservation of sut-1"),
    ]
    assert entries[2].before is not None
    assert entries[2].before["member"] == "anna"
