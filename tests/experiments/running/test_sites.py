"""Sites: hosts that only workers there reach, and runs that only those workers take."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models.functions import Now
from django.utils import timezone

from experiments import tasks
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.keeping.operating.watched import watched_queues
from experiments.models import Application, DryRun, Host, Machine, Member, Recipe, Run, Site, Team, Worker, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.hosts.canaries import request_canaries
from experiments.registry.hosts.inventory import request_check, update_host
from experiments.registry.hosts.machines import settle
from experiments.registry.hosts.sites import add_site, find_site, remove_site
from experiments.registry.workers import outbox
from experiments.registry.workers.attendance import attended_queues
from experiments.registry.workers.outbox import Message
from experiments.running.queue.dispatch import claim_next, something_to_do
from experiments.running.queue.waiting import expected_of
from experiments.running.restoring.requests import request_restore
from experiments.tasks import dispatch
from tests.experiments.conftest import APPLICATION, RECIPE, WORKLOAD, ready_host

DEAD = {"lease_until": Now() - timedelta(minutes=1), "doubted_at": Now() - timedelta(minutes=1)}


@pytest.fixture
def launch(admin: Member, stock: dict[str, Any]) -> Any:
    """Queues a run on two hosts, each made where it is first named: `berlin/a`, or `a` at the central site."""
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}

    def launch(sut: str, driver: str) -> Run:
        return launch_run(admin, Choice(**documents, sut=host_at(admin, sut), drivers=[host_at(admin, driver)]))

    return launch


def host_at(member: Member, text: str) -> Host:
    site, _, name = text.rpartition("/")
    found: Host | None = Host.objects.filter(name=name).first()
    if found is not None:
        return found
    made: Host = ready_host(member, name)
    if site:
        at, _ = Site.objects.get_or_create(name=site)
        Host.objects.filter(pk=made.pk).update(site=at)  # all of them have one address, and would be one machine
    made.refresh_from_db()
    return made


def claim(site: str = "") -> int | None:
    run = claim_next("worker", site)
    return run.number if run else None


def test_a_worker_takes_the_runs_of_its_own_site_only(launch: Any) -> None:
    launch("berlin/a", "berlin/b")
    launch("c", "d")
    launch("oslo/e", "oslo/f")
    assert [something_to_do(site) for site in ("", "berlin", "oslo", "rome")] == [True, True, True, False]
    assert claim() == 2
    assert claim() is None
    assert claim("rome") is None
    assert claim("oslo") == 3
    assert claim("berlin") == 1
    assert [something_to_do(site) for site in ("", "berlin", "oslo")] == [False, False, False]


def test_a_run_whose_worker_is_gone_is_adopted_at_its_site(launch: Any) -> None:
    launch("berlin/a", "berlin/b")
    assert claim("berlin") == 1
    Run.objects.update(**DEAD)
    assert claim() is None
    assert claim("oslo") is None
    assert claim("berlin") == 1
    assert Run.objects.get().attempts == 2


def test_a_worker_with_a_database_takes_and_adopts_nothing_where_keys_stay(launch: Any, admin: Member) -> None:
    launch("berlin/a", "berlin/b")
    launch("oslo/e", "oslo/f")
    Site.objects.filter(name="berlin").update(keys_stay=True)
    assert ([something_to_do(site) for site in ("berlin", "oslo")], claim("berlin")) == ([False, True], None)
    taken = claim_next("token/machine:7:1", "berlin", admin.team_id)
    assert taken is not None
    Run.objects.update(**DEAD)
    assert claim("berlin") is None
    again = claim_next("token/machine:8:1", "berlin", admin.team_id)
    assert again is not None
    assert (again.pk, again.attempts) == (taken.pk, 2)


@pytest.mark.django_db(transaction=True)
def test_workers_with_a_database_are_not_started_where_keys_stay(settings: Any) -> None:
    settings.BENCHHUB_EMBEDDED = False
    add_site("berlin", keys_stay=True)
    with pytest.raises(CommandError, match=r"The keys of site berlin stay there.* site-worker --site berlin`"):
        call_command("worker", site="berlin")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Task and queue of each message that is handed to the sender, instead of being sent."""
    said: list[tuple[str, str]] = []

    class Listener:
        def put(self, message: Message) -> None:
            said.append((message.task.rpartition(".")[2], message.queue))

    monkeypatch.setattr(outbox, "_sender", Listener)
    return said


def test_what_needs_a_host_is_said_to_the_workers_of_its_site(
    launch: Any,
    admin: Member,
    published: list[tuple[str, str]],
    django_capture_on_commit_callbacks: Any,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        launch("berlin/a", "berlin/b")
        launch("c", "d")
        request_check(admin, Host.objects.get(name="a"))
        request_canaries(admin, Host.objects.get(name="b"))
    Host.objects.filter(name="a").update(state="dirty", dirty_run=Run.objects.first())
    with django_capture_on_commit_callbacks(execute=True):
        request_restore(admin, Host.objects.get(name="a"))
    assert published == [
        ("execute_run", "runs.berlin"),
        ("execute_run", "runs"),
        ("check_host", "default.berlin"),
        ("try_host", "default.berlin"),
        ("restore_host", "default.berlin"),
    ]


def test_a_tick_wakes_the_workers_of_each_site_where_something_is_due(
    launch: Any, published: list[tuple[str, str]]
) -> None:
    for pair in (("berlin/a", "berlin/b"), ("c", "d"), ("oslo/e", "oslo/f")):
        launch(*pair)
    claim("oslo")
    dispatch()
    assert published == [("execute_run", "runs"), ("execute_run", "runs.berlin")]


@pytest.mark.parametrize("kind", ["check_host", "try_host", "dry_run"])
def test_what_waits_at_one_site_keeps_no_message_from_another(
    kind: str, launch: Any, published: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that waits which nobody there takes."""
    monkeypatch.setattr(tasks, "MOST_REPEATED", 2)
    runs = [launch(*pair) for pair in (("berlin/a", "berlin/b"), ("berlin/c", "berlin/d"), ("oslo/e", "oslo/f"))]
    for days, run in zip((3, 2, 1), runs, strict=True):
        at = timezone.now() - timedelta(days=days)
        waits = {"state": "pending", "message": "", "hint": "", "at": at.isoformat(timespec="seconds")}
        if kind == "dry_run":
            row = DryRun.objects.create(team=run.team, sut=run.sut, drivers=run.drivers, spec=run.spec)
            DryRun.objects.filter(pk=row.pk).update(created_at=at)
        else:
            field = "last_check" if kind == "check_host" else "last_canaries"
            Host.objects.filter(pk=run.sut_id).update(**{field: waits})
    published.clear()
    tasks.reap()
    assert published == [(kind, "default.berlin"), (kind, "default.oslo")]


def test_a_site_without_a_worker_gets_no_messages_that_nobody_would_take(
    admin: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    at: list[str] = []
    monkeypatch.setattr("celery.current_app.send_task", lambda *_given, queue, **_more: at.append(queue.name))
    for site in ("", "berlin"):
        for is_there in (False, True):
            monkeypatch.setattr(outbox, "is_attended", {f"default.{site}": is_there}.get)
            outbox._publish(Message(outbox.CHECK_HOST, 1, 0.0, site))
    assert at == ["default", "default", "default.berlin"]


def worker_at(site: str, *, slots: int = 4, silent_min: int = 0) -> None:
    at = {"queues": [f"runs.{site}" if site else "runs"], "site": site, "slots": slots, "started_at": Now()}
    seen_at = Now() - timedelta(minutes=silent_min)
    Worker.objects.create(name=f"w@{site}", process=f"{site}:1", version="1", seen_at=seen_at, **at)


def reason(number: int) -> str:
    expected = expected_of(Run.objects.get(number=number))
    return expected.reason if expected else ""


def test_only_queues_from_which_a_living_worker_takes_are_attended(db: None) -> None:
    worker_at("berlin")
    worker_at("oslo", silent_min=5)
    assert attended_queues() == {"runs.berlin"}
    assert watched_queues() == ["runs", "default", "runs.berlin", "default.berlin", "runs.oslo", "default.oslo"]


def test_a_run_says_that_its_site_has_no_worker_and_which_slots_are_busy(launch: Any) -> None:
    launch("berlin/a", "berlin/b")
    assert reason(1) == "No worker is at site berlin; an operator must start one (worker --site berlin)."
    worker_at("")
    worker_at("berlin", silent_min=7)
    assert reason(1).startswith("No worker at site berlin has been seen for 7 min;")
    expected = expected_of(Run.objects.get())
    assert expected is not None
    assert expected.starts_at is None
    Worker.objects.filter(site="berlin").update(seen_at=Now(), slots=1)
    assert reason(1) == "It is next."
    launch("berlin/c", "berlin/d")
    assert claim("berlin") == 1
    assert reason(2) == "The only worker slot at site berlin is busy."


def test_a_team_at_its_limit_waits_and_holds_up_no_other_team(launch: Any, admin: Member, other_admin: Member) -> None:
    for pair in ("ab", "cd", "ef"):
        launch(*pair)
    Team.objects.filter(pk=admin.team_id).update(quota_live_runs=1)
    assert claim() == 1
    assert claim() is None
    assert reason(2) == f"Team {admin.team.name} has 1 live run, its limit."
    first = expected_of(Run.objects.get(number=2))
    second = expected_of(Run.objects.get(number=3))
    assert first is not None
    assert second is not None
    assert first.starts_at is not None
    assert second.starts_at is not None
    assert first.starts_at > timezone.now()  # when run 1 has ended
    assert second.starts_at == first.ends_at

    theirs = run_of(other_admin)
    claimed = claim_next("worker")
    assert claimed == theirs

    Team.objects.filter(pk=admin.team_id).update(quota_live_runs=2)
    assert claim() == 2


def test_a_team_that_may_have_no_live_run_any_more_waits_for_a_person_beside_those_that_it_has(
    launch: Any, admin: Member
) -> None:
    for pair in ("ab", "cd"):
        launch(*pair)
    assert claim() == 1
    Team.objects.filter(pk=admin.team_id).update(quota_live_runs=0)
    assert reason(2) == f"Team {admin.team.name} has 1 live run, its limit."
    expected = expected_of(Run.objects.get(number=2))
    assert expected is not None
    assert expected.starts_at is None


def run_of(member: Member) -> Run:
    """A waiting run of another team, with documents and hosts of its own."""
    stock: dict[str, Any] = {
        "application": save_version(member, Application, "tomcat", APPLICATION),
        "recipe": save_version(member, Recipe, "limits", RECIPE),
        "workload": save_version(member, Workload, "home page", WORKLOAD),
    }
    return launch_run(member, Choice(**stock, sut=ready_host(member, "x"), drivers=[ready_host(member, "y")]))


@pytest.mark.parametrize("silent_min, theirs_is_next", [(None, False), (5, False), (0, True)])
def test_where_each_worker_acts_for_one_team_a_team_without_one_holds_up_no_other_on_the_same_machine(
    admin: Member, other_admin: Member, silent_min: int | None, theirs_is_next: bool
) -> None:
    site = add_site("berlin", keys_stay=True)
    for member in (other_admin, admin):  # theirs has waited longer
        hosts = [ready_host(member, f"{part} of {member.team.slug}") for part in ("sut", "driver")]
        Host.objects.filter(pk__in=[host.pk for host in hosts]).update(site=site)
        for host in hosts:
            host.refresh_from_db()
        documents: dict[str, Any] = {
            "application": save_version(member, Application, "tomcat", APPLICATION),
            "recipe": save_version(member, Recipe, "limits", RECIPE),
            "workload": save_version(member, Workload, "home page", WORKLOAD),
        }
        launch_run(member, Choice(**documents, sut=hosts[0], drivers=[hosts[1]]))
    Host.objects.filter(name__startswith="sut").update(machine=Machine.objects.create(boot_id="of both"))
    serves(admin.team)
    if silent_min is not None:
        serves(other_admin.team, silent_min=silent_min)
    assert something_to_do("berlin", admin.team_id) is not theirs_is_next
    mine = expected_of(Run.objects.get(team=admin.team))
    assert theirs_is_next or (mine is not None and mine.reason == "It is next.")


def serves(team: Team, *, silent_min: int = 0) -> None:
    """A worker that fetches the runs of this team at the site berlin."""
    at = {"site": "berlin", "slots": 4, "queues": [], "version": "1", "started_at": Now()}
    seen_at = Now() - timedelta(minutes=silent_min)
    Worker.objects.create(name="site-worker", process=f"{team.slug}:1", team=team, seen_at=seen_at, **at)


def test_a_site_at_its_limit_waits_and_the_other_sites_go_on(launch: Any, settings: Any) -> None:
    for pair in (("berlin/a", "berlin/b"), ("berlin/c", "berlin/d"), ("e", "f"), ("g", "h")):
        launch(*pair)
    Site.objects.update(most_live_runs=1)
    settings.BENCHHUB_SITE_LIVE_RUNS = 1
    assert (claim("berlin"), claim("berlin")) == (1, None)
    assert (claim(), claim()) == (3, None)
    assert something_to_do("berlin") is False
    assert reason(2) == "Site berlin has 1 live run, its limit."
    assert reason(4) == "The central site has 1 live run, its limit."
    Run.objects.filter(number=1).update(**DEAD)
    assert claim("berlin") == 1  # what is live already goes on, whatever the limit


def test_hosts_of_two_sites_are_refused_at_launch_by_field_and_name(launch: Any) -> None:
    with pytest.raises(RequestError) as refused:
        launch("berlin/a", "b")
    assert refused.value.field == "drivers"
    assert "b is at the central site and a at site berlin" in refused.value.message
    assert not Run.objects.exists()


def test_a_run_waits_while_one_of_its_hosts_has_moved_to_another_site(launch: Any, admin: Member) -> None:
    launch("berlin/a", "berlin/b")
    update_host(admin, Host.objects.get(name="b"), site=None)
    assert (claim(), claim("berlin")) == (None, None)
    update_host(admin, Host.objects.get(name="a"), site=None)
    assert claim() == 1


def test_a_host_does_not_move_under_a_run(launch: Any, admin: Member) -> None:
    launch("berlin/a", "berlin/b")
    claim("berlin")
    with pytest.raises(Conflict, match="A run uses a"):
        update_host(admin, Host.objects.get(name="a"), site=None)


def test_the_same_private_address_is_another_machine_at_another_site(admin: Member) -> None:
    here, there = host_at(admin, "a"), host_at(admin, "berlin/b")
    for host in (here, there):
        settle(host)
    here.refresh_from_db()
    there.refresh_from_db()
    assert (here.address, here.port) == (there.address, there.port)
    assert here.place != there.place
    assert here.machine is None
    update_host(admin, there, site=None)
    machines = set(Host.objects.values_list("machine", flat=True))
    assert len(machines) == 1
    assert machines != {None}


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "Berlin", "berlin_2", "-berlin", "berlin-", "b" * 41, "berlin.de", "ber lin"])
def test_a_name_that_no_queue_could_have_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="A site's name has") as refused:
        add_site(name)
    assert refused.value.field == "name"


@pytest.mark.django_db
def test_an_unknown_site_is_refused_with_those_that_there_are() -> None:
    add_site("berlin")
    add_site("oslo")
    with pytest.raises(RequestError, match=r"There is no site 'rome'\. There are: berlin, oslo\.") as refused:
        find_site("rome")
    assert refused.value.field == "site"


def test_a_site_with_hosts_is_not_removed(admin: Member) -> None:
    host_at(admin, "berlin/a")
    with pytest.raises(Conflict, match="1 host is at site berlin"):
        remove_site("berlin")
    update_host(admin, Host.objects.get(), site=None)
    remove_site("berlin")
    assert not Site.objects.exists()


@pytest.mark.django_db
def test_the_operators_command_adds_changes_lists_and_removes_sites() -> None:
    def sites(*words: str) -> str:
        said = StringIO()
        call_command("sites", *words, stdout=said)
        return said.getvalue()

    assert "BENCHHUB_SITE=berlin" in sites("add", "berlin", "--description", "Lab in Berlin", "--most-live-runs", "20")
    assert sites() == "berlin: 0 hosts; at most 20 live runs; Lab in Berlin\n"
    sites("change", "berlin", "--most-live-runs", "0")
    assert sites() == "berlin: 0 hosts; Lab in Berlin\n"
    with pytest.raises(CommandError, match="There is a site named berlin already"):
        sites("add", "berlin")
    sites("remove", "berlin")
    with pytest.raises(CommandError, match="There is no site 'berlin'"):
        sites("change", "berlin", "--description", "x")
