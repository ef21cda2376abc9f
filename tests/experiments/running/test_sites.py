"""Sites: hosts that only workers there reach, and runs that only those workers take."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models.functions import Now

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Host, Member, Run, Site
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.hosts.inventory import update_host
from experiments.registry.hosts.machines import settle
from experiments.registry.hosts.sites import add_site, find_site, remove_site
from experiments.running.queue.dispatch import claim_next, something_to_do
from tests.experiments.conftest import ready_host

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
        update_host(member, made, site=at)
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
