"""Workers of two sites beside each other: each takes what is its site's, also when the other's is gone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from experiments.models import Host, Run, Site
from experiments.registry.hosts.inventory import request_check, update_host
from experiments.registry.workers.attendance import is_attended
from experiments.running.queue.leases import lost_runs
from tests.faults.stage import Actor, Stage, has_event, spoilt
from tests.sshd import SshdHost, running_sshd

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]

SITES = ("berlin", "oslo")


@pytest.fixture
def pulls() -> bool:
    """Workers of these sites reach the database; those that do not are at a site of their own."""
    return False


@pytest.fixture
def pairs(
    stage: Stage, sshd_hosts: tuple[SshdHost, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[Actor, Actor]]]:
    """A SUT and a driver host at each site."""
    with running_sshd(tmp_path_factory.mktemp("d")) as fourth:
        hosts = iter((*sshd_hosts, fourth))
        found = {}
        for name in SITES:
            site = Site.objects.create(name=name)
            found[name] = (stage.add_host(f"{name}-a", next(hosts)), stage.add_host(f"{name}-b", next(hosts)))
            for actor in found[name]:
                update_host(stage.member, actor.row, site=site)
                actor.row.refresh_from_db()
        yield found


def test_each_worker_takes_only_the_runs_of_its_own_site(stage: Stage, pairs: dict[str, tuple[Actor, Actor]]) -> None:
    """One after the other: all hosts of this play are one machine, which one run at a time uses."""
    for name in SITES:
        stage.start_worker(name, lease_s=2, site=name)
    pairs["berlin"][1].hold()
    first = stage.launch(*pairs["berlin"], warm_up_s=0)
    stage.until(has_event(first, "load_started", measured=True))
    assert stage.worker_of(first) == "berlin"
    stage.kill_worker("berlin")
    stage.until(lambda: lost_runs().filter(pk=first.pk).exists())
    with pytest.raises(AssertionError, match="this did not happen"):  # the worker at Oslo has nothing else to do
        stage.until(lambda: Run.objects.get(pk=first.pk).attempts > 1, seconds=5)

    pairs["berlin"][1].release()
    stage.start_worker("berlin-2", lease_s=2, site="berlin")
    stage.until(stage.all_finished)
    second = stage.launch(*pairs["oslo"], warm_up_s=0)
    stage.until(stage.all_finished)
    logs = {name: (stage.folder / f"{name}.log").read_text() for name in ("berlin", "berlin-2", "oslo")}
    claimed = {
        name: [run.number for run in (first, second) if f"(#{run.number}): claimed" in logs[name]] for name in logs
    }
    assert claimed == {"berlin": [first.number], "berlin-2": [first.number], "oslo": [second.number]}
    for run in (first, second):
        run.refresh_from_db()
        assert (run.outcome, run.restore, spoilt(run)) == ("succeeded", "verified", [])
    assert stage.broken() == []


def test_connections_are_tested_at_the_hosts_site(stage: Stage, pairs: dict[str, tuple[Actor, Actor]]) -> None:
    stage.start_worker("oslo", site="oslo")
    stage.until(lambda: is_attended("default.oslo"))
    for actor in (*pairs["berlin"], *pairs["oslo"]):
        request_check(stage.member, actor.row)
    stage.until(lambda: checks("oslo") == {"ok"})
    assert checks("berlin") == {"pending"}
    stage.start_worker("berlin", site="berlin")
    stage.until(lambda: is_attended("default.berlin"))
    for actor in pairs["berlin"]:
        request_check(stage.member, actor.row)
    stage.until(lambda: checks("berlin") == {"ok"})


def checks(site: str) -> set[str]:
    """How the connection tests of a site's hosts stand."""
    return {host.last_check.get("state", "") for host in Host.objects.filter(site__name=site)}
