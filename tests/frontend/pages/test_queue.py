"""The queue, what a waiting run says on its pages, retries, and reservations, as people use them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import Experiment, Host, Member, Reservation, Role, Run
from experiments.registry.hosts.reservations import reserve
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.plan import Expected
from frontend.shared.templatetags.waiting import about, starts
from tests.experiments.asking.test_retries import fail, grant_all
from tests.experiments.conftest import MakeMember, admin, make_member, other_admin, stock, team
from tests.frontend.flat import flat
from tests.frontend.pages.test_new_run import experiment_form, run_form
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "other_admin", "stock", "team"]


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are hints; these tests look at what PostgreSQL holds."""
    monkeypatch.setattr("experiments.registry.workers.outbox.hint", lambda *_given: None)


@pytest.fixture
def anna(admin: Member, stock: dict[str, Any], make_member: MakeMember) -> Member:
    member = make_member(admin.team, Role.LAUNCHER, "anna")
    grant_all(admin, member)
    return member


@pytest.mark.parametrize(
    "value_s, words",
    [(1, "1 min"), (700, "12 min"), (3600, "1 h"), (4800, "1 h 20 min"), (86400 * 2, "2 d"), (86400 * 2.5, "2 d 12 h")],
)
def test_a_span_of_time_has_no_false_exactness(value_s: float, words: str) -> None:
    assert about(value_s) == words


@pytest.mark.parametrize(
    "in_s, before, words",
    [
        (720, 3, "starts in about 12 min (3 runs before it)"),
        (720, 1, "starts in about 12 min (1 run before it)"),
        (720, 0, "starts in about 12 min"),
        (3, 0, "starts in a moment"),
        (None, 0, "starts when somebody has put that right"),
    ],
)
def test_when_a_run_starts_is_said_in_words(in_s: float | None, before: int, words: str) -> None:
    at = None if in_s is None else timezone.now() + timedelta(seconds=in_s + 1)
    assert starts(Expected(1, 1, "why", before, 20.0, at, at)) == words


def test_the_queue_says_why_a_run_waits_and_when_it_starts(admin: Member, stock: dict[str, Any]) -> None:
    first, second = launch_run(admin, Choice(**stock)), launch_run(admin, Choice(**stock))
    client, url = signed_in(admin), address("queue", admin.team)
    waiting = client.get(url).context["queue"].waiting
    assert [line.expected.reason for line in waiting] == ["It is next.", "Run #1 is before it on sut-1."]
    assert (waiting[1].expected.starts_at - waiting[0].expected.starts_at).total_seconds() == 20
    Run.objects.filter(pk=first.pk).update(state="measuring", started_at=first.queued_at)
    Host.objects.filter(pk=stock["sut"].pk).update(leased_by=first)
    queue = client.get(url).context["queue"]
    assert [line.run.number for line in queue.running] == [1]
    assert queue.waiting[0].expected.reason == "sut-1 is used by run #1."
    Host.objects.filter(pk=stock["sut"].pk).update(state="drained")
    assert client.get(url).context["queue"].waiting[0].expected.starts_at is None
    client.post(address("cancel_queued", admin.team, second.number))
    assert Run.objects.get(pk=second.pk).outcome == "cancelled"
    assert client.post(address("cancel_queued", admin.team, 999)).status_code == 404


def test_a_long_queue_shows_its_head_and_counts_the_rest(
    admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.running.queue.timetable.MAX_SHOWN", 2)
    for _ in range(5):
        launch_run(admin, Choice(**stock))
    page = signed_in(admin).get(address("queue", admin.team))
    assert (len(page.context["queue"].waiting), page.context["queue"].waiting_count) == (2, 5)
    assert "3 more wait behind these" in page.content.decode()


def test_of_many_runs_under_way_the_queue_shows_the_first_and_counts_the_rest(
    admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.queue.views.MOST_RUNNING", 2)
    runs = [launch_run(admin, Choice(**stock)) for _ in range(3)]
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(state="measuring", started_at=timezone.now())
    page = signed_in(admin).get(address("queue", admin.team))
    assert [line.run for line in page.context["queue"].running] == runs[:2]
    assert "1 more run beside these" in page.content.decode()


def test_the_pages_of_a_waiting_run_say_why_and_how_long(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    launch_run(admin, Choice(**stock), priority=Run.Priority.LOW)
    claim_next("worker")
    client = signed_in(admin)
    page = client.get(address("run", admin.team, 2)).content.decode()
    assert "sut-1 is used by run #1." in page
    assert "starts in a moment (1 run before it)" in page
    part = client.get(address("run", admin.team, 2) + "?part=waiting").content.decode()
    assert "sut-1 is used by run #1." in part
    assert "<h1>" not in part
    assert client.get(address("run", admin.team, 1) + "?part=waiting").content.decode().strip() == ""
    rows = client.get(address("runs", admin.team)).content.decode()
    assert 'title="sut-1 is used by run #1. It starts' in rows
    assert ">low</span>" in rows


def test_an_experiment_says_how_long_it_will_take(admin: Member, stock: dict[str, Any]) -> None:
    parts = {name: stock[name] for name in ("application", "recipe", "sut", "drivers")}
    candidates = [Candidate(name, **parts) for name in ("a", "b")]
    made = create_experiment(admin, name="q", workload=stock["workload"], candidates=candidates, repetitions=15)
    client, url = signed_in(admin), address("experiment", admin.team, made.pk)
    assert "about 10 min, once its hosts are free" in client.get(url).content.decode()
    launch_experiment(admin, made)
    assert "about 10 min to go" in client.get(url).content.decode()
    Host.objects.filter(name="sut-1").update(state="dirty")
    assert "the rest waits for somebody" in flat(client.get(url).content.decode())


def test_the_priority_is_chosen_at_launch_and_changed_while_it_waits(
    admin: Member, anna: Member, stock: dict[str, Any]
) -> None:
    client = signed_in(anna)
    refused = client.post(address("new_run", admin.team), run_form(stock, priority="high"))
    assert refused.status_code == 422
    assert "needs the role editor" in refused.context["form"].errors["priority"][0]
    client.post(address("new_run", admin.team), run_form(stock, priority="low", retries="2"))
    run = Run.objects.get()
    assert (run.priority, run.retries_left) == (-1, 2)
    url = address("run_priority", admin.team, 1)
    assert '<option value="high"' not in client.get(address("run", admin.team, 1)).content.decode()
    assert client.post(url, {"priority": "high"}).status_code == 403
    client.post(url, {"priority": "sudden"})
    run.refresh_from_db()
    assert run.priority == -1
    signed_in(admin).post(url, {"priority": "high"})
    run.refresh_from_db()
    assert run.priority == 1


def test_an_experiment_that_may_not_be_launched_so_is_not_stored_either(
    admin: Member, anna: Member, stock: dict[str, Any]
) -> None:
    form = experiment_form(stock, launch="1", priority="high", retries="3")
    assert signed_in(anna).post(address("new_experiment", admin.team), form).status_code == 422
    assert not Experiment.objects.exists()
    signed_in(admin).post(address("new_experiment", admin.team), form)
    assert {(run.priority, run.retries_left) for run in Run.objects.all()} == {(1, 3)}


def test_the_api_call_beside_the_form_says_priority_and_retries(admin: Member, stock: dict[str, Any]) -> None:
    form = run_form(stock, priority="low", retries="1")
    text = signed_in(admin).post(address("run_preview", admin.team), form).context["curl"]
    assert '"priority": "low"' in text
    assert '"retries": 1' in text


def test_a_run_and_its_retry_link_each_other(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock), retries=1)
    fail("host")
    client = signed_in(admin)
    first, second = (client.get(address("run", admin.team, number)).content.decode() for number in (1, 2))
    assert 'Tried again as <a href="/t/perf/runs/2/">run #2</a>' in first
    assert 'retry of <a href="/t/perf/runs/1/">#1</a>' in second


def test_a_host_is_reserved_from_its_page_and_given_back(
    admin: Member, anna: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    client, sut = signed_in(anna), stock["sut"]
    page = address("host", admin.team, sut.pk)
    form = {"hosts": str(sut.pk), "hours": "2", "reason": "profiling", "back": str(sut.pk)}
    answer = client.post(address("reserve", admin.team), form)
    assert answer.headers["Location"] == page
    made = Reservation.objects.get()
    assert round((made.until - made.starts_at).total_seconds()) == 7200
    for viewer in (client, signed_in(admin), signed_in(make_member(admin.team, Role.VIEWER))):
        assert "Reserved by anna until" in viewer.get(page).content.decode()
    preview = signed_in(admin).post(address("run_preview", admin.team), run_form(stock)).content.decode()
    assert "is reserved by anna until" in preview
    client.post(address("extend_reservation", admin.team, made.pk), {"hours": "3"})
    made.refresh_from_db()
    assert round((made.until - made.starts_at).total_seconds()) == 5 * 3600
    assert signed_in(admin).post(address("extend_reservation", admin.team, made.pk), {"hours": "1"}).status_code == 403
    listed = signed_in(admin).get(address("hosts", admin.team)).content.decode()
    assert "anna until" in listed
    ended = signed_in(admin).post(address("end_reservation", admin.team, made.pk))
    assert ended.headers["Location"] == address("hosts", admin.team)
    assert "Reserved by" not in client.get(page).content.decode()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"hosts": ""}, "Hosts: "),
        ({"hours": "0"}, "Hours: "),
        ({"hours": "9999"}, "Hours: "),
        ({"starts_at": "tomorrow"}, "From (UTC): "),
        ({"hosts": "999999"}, "Hosts: "),
        ({"starts_at": "2999-01-01T10:00"}, "begins within 14 days"),
    ],
)
def test_a_wrong_reservation_is_explained(
    admin: Member, stock: dict[str, Any], change: dict[str, str], words: str
) -> None:
    form = {"hosts": str(stock["sut"].pk), "hours": "2"} | change
    page = signed_in(admin).post(address("reserve", admin.team), form, follow=True)
    assert words in page.content.decode()
    assert not Reservation.objects.exists()


def test_another_teams_hosts_and_reservations_cannot_be_touched(
    admin: Member, stock: dict[str, Any], other_admin: Member
) -> None:
    made = reserve(admin, [stock["sut"]], until=timezone.now() + timedelta(hours=1))
    client = signed_in(other_admin)
    client.post(address("reserve", other_admin.team), {"hosts": str(stock["drivers"][0].pk), "hours": "2"})
    assert client.post(address("end_reservation", other_admin.team, made.pk)).status_code == 404
    assert Reservation.objects.get().until == made.until


def test_a_host_that_is_drained_names_the_run_that_ends_first(admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    claim_next("worker")
    client, host = signed_in(admin), stock["sut"]
    client.post(address("host_action", admin.team, host.pk, "drain"))
    page = client.get(address("host", admin.team, host.pk)).content.decode()
    assert "Draining: <a" in page
    assert "Drained by ada." in page
