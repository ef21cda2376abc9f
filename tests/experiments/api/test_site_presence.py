"""What runs, members and operators are told of workers that fetch their runs over HTTPS."""

# ruff: noqa: F811 - fixtures

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from experiments.asking.launching.launch import rerun
from experiments.keeping.operating.operations import workers
from experiments.keeping.operating.sites import SiteState, site_states
from experiments.keeping.operating.watched import watched_queues
from experiments.models import Host, Member, Run, Site, Worker
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.hosts.sites import add_site
from experiments.registry.workers.presence import Presence
from experiments.running.executing.execution import worker_name
from experiments.running.queue.plan import Expected
from experiments.running.queue.waiting import expected_of
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_site import ASKED, claim, door_of, queued, site  # noqa: F401
from tests.experiments.conftest import ready_host

pytestmark = pytest.mark.django_db

NOBODY = "No worker of this team is at site berlin; an operator must start one (site-worker --site berlin)."


def expected(run: Run) -> Expected:
    found = expected_of(Run.objects.get(pk=run.pk))
    assert found is not None
    return found


def has_worker(member: Member, make_api: MakeApi) -> bool:
    (found,) = make_api(member).get("/sites").json()
    return bool(found["has_worker"])


def state_of_berlin() -> SiteState:
    return next(one for one in site_states(database_now()) if one.name == "berlin")


def on_other_hosts(admin: Member, run: Run, site: Site) -> Run:
    """The same run once more, on hosts of its own."""
    again = rerun(admin, run)
    hosts = [ready_host(admin, name) for name in ("far-sut-2", "far-driver-2")]
    Host.objects.filter(pk__in=[host.pk for host in hosts]).update(site=site, private_key=b"", address="10.0.0.9")
    again.sut, again.drivers = hosts[0], driver_set(hosts[1:])
    again.save(update_fields=["sut", "drivers"])
    return again


def test_a_run_a_member_and_the_operator_see_the_worker_of_the_team_and_no_other_teams(
    admin: Member,
    other_admin: Member,
    site: Site,
    queued: Run,
    make_api: MakeApi,
) -> None:
    assert (expected(queued).reason, expected(queued).starts_at) == (NOBODY, None)
    assert state_of_berlin().trouble == "No worker is at site berlin. One run waits there."

    assert claim(door_of(other_admin, site)) is None
    assert (expected(queued).reason, expected(queued).starts_at) == (NOBODY, None)
    assert (has_worker(admin, make_api), has_worker(other_admin, make_api)) == (False, True)
    assert (state_of_berlin().workers, state_of_berlin().slots, state_of_berlin().trouble) == (1, 2, "")

    again = rerun(admin, queued)
    assert ours_claims(admin, site) == queued.pk
    assert expected(again).reason == "far-sut is used by run #1."
    assert expected(again).starts_at is not None
    assert has_worker(admin, make_api)
    assert (state_of_berlin().workers, state_of_berlin().slots) == (2, 4)
    assert watched_queues() == ["runs", "default"]


def ours_claims(admin: Member, site: Site) -> Any:
    answer = door_of(admin, site).post("/site/claims", {**ASKED, "worker": "machine:8:1"}).json()
    return answer["run"] and answer["run"]["id"]


def test_a_worker_of_the_team_that_was_killed_is_told_of_with_the_command_that_starts_another(
    admin: Member, site: Site, queued: Run
) -> None:
    again = rerun(admin, queued)
    assert ours_claims(admin, site) == queued.pk
    Run.objects.filter(pk=queued.pk).update(state="finished")
    Host.objects.update(leased_by=None)
    Worker.objects.update(seen_at=Now() - timedelta(minutes=7))
    assert expected(again).reason == (
        "No worker of this team at site berlin has been seen for 7 min; "
        "an operator must start one (site-worker --site berlin)."
    )


def test_the_runs_of_another_team_take_no_slot_of_a_worker_that_fetches_those_of_one(
    admin: Member, other_admin: Member, site: Site, queued: Run
) -> None:
    waiting = on_other_hosts(admin, queued, site)
    door_of(admin, site).post("/site/claims", {**ASKED, "slots": 1})
    queued.refresh_from_db()
    assert queued.state == "preparing"
    assert expected(waiting).reason == "The only worker slot at site berlin is busy."
    Run.objects.filter(pk=queued.pk).update(team=other_admin.team)
    assert expected(waiting).reason == "It is next."
    starts_at = expected(waiting).starts_at
    assert starts_at is not None
    assert starts_at <= database_now()


def test_a_worker_that_only_tests_connections_is_not_one_that_executes_runs(
    admin: Member, queued: Run, api: ApiClient
) -> None:
    Site.objects.update(keys_stay=False)
    moments = {"started_at": Now(), "seen_at": Now()}
    Worker.objects.create(name="d", process="b:1", site="berlin", queues=["default.berlin"], slots=8, **moments)
    assert (state_of_berlin().workers, state_of_berlin().slots) == (0, 0)
    assert state_of_berlin().trouble == "No worker is at site berlin. One run waits there."
    assert api.get("/sites").json()[0]["has_worker"] is False


def test_a_worker_that_waits_for_messages_does_not_count_where_keys_stay(
    admin: Member, queued: Run, api: ApiClient
) -> None:
    moments = {"started_at": Now(), "seen_at": Now()}
    Worker.objects.create(name="r", process="b:1", site="berlin", queues=["runs.berlin"], slots=8, **moments)
    assert (expected(queued).reason, api.get("/sites").json()[0]["has_worker"]) == (NOBODY, False)
    assert (state_of_berlin().workers, state_of_berlin().slots) == (0, 0)
    Site.objects.update(keys_stay=False)
    assert (expected(queued).reason, api.get("/sites").json()[0]["has_worker"]) == ("It is next.", True)
    assert (state_of_berlin().workers, state_of_berlin().slots) == (1, 8)


@pytest.mark.parametrize("name", ("c:7:1", "c:7:evil:1:1"))
def test_a_worker_that_gives_itself_the_name_of_another_one_takes_nothing_from_it_and_gives_it_no_life(
    name: str, admin: Member, site: Site, queued: Run
) -> None:
    long_ago = database_now() - timedelta(hours=1)
    dead = Worker.objects.create(
        name="runs@c", process="c:7", queues=["runs"], slots=4, started_at=long_ago, seen_at=long_ago
    )
    door = door_of(admin, site)
    run = door.post("/site/claims", {**ASKED, "worker": name}).json()["run"]
    assert door.post(f"/site/runs/{run['id']}/lease?fence={run['fence']}").status_code == 200
    dead.refresh_from_db()
    assert (dead.name, dead.site, dead.team, dead.queues, dead.seen_at) == ("runs@c", "", None, ["runs"], long_ago)
    mine = Worker.objects.exclude(pk=dead.pk).get()
    assert (mine.site, mine.team, mine.queues) == ("berlin", admin.team, [])
    held = {state.worker.pk: [one.pk for one in state.runs] for state in workers(database_now())}
    assert held == {dead.pk: [], mine.pk: [queued.pk]}


def test_workers_of_two_sites_that_are_called_alike_are_both_there(
    admin: Member, other_admin: Member, site: Site, queued: Run
) -> None:
    """As the first pods of two StatefulSets are, in clusters that do not know of each other."""
    asked = {**ASKED, "worker": "site-worker-0:1:9"}
    doors = [door_of(admin, site), door_of(other_admin, site), door_of(admin, add_site("oslo", keys_stay=True))]
    for door in (*doors, *doors):
        door.post("/site/claims", asked)
    rows = Worker.objects.order_by("pk")
    assert [(row.team, row.site) for row in rows] == [
        (admin.team, "berlin"), (other_admin.team, "berlin"), (admin.team, "oslo"),
    ]  # fmt: skip
    assert {(row.name, row.host_and_pid) for row in rows} == {("site-worker@site-worker-0:1", "site-worker-0:1")}


def test_the_row_of_a_worker_has_the_version_that_it_says_also_where_an_older_one_had_its_name(
    admin: Member, site: Site
) -> None:
    door = door_of(admin, site)
    door.post("/site/claims", ASKED)
    Worker.objects.update(version="0.9.1", seen_at=Now() - timedelta(minutes=1))
    door.post("/site/claims", ASKED)
    Presence("worker", ["runs"], 4).show()
    Worker.objects.filter(site="").update(version="0.9.1")
    Presence("worker", ["runs"], 4).show()
    assert [worker.version for worker in Worker.objects.all()] == [ASKED["version"]] * 2


def test_a_beat_keeps_the_worker_that_holds_the_run_seen(admin: Member, site: Site, queued: Run) -> None:
    door = door_of(admin, site)
    run = door.post("/site/claims", ASKED).json()["run"]
    Worker.objects.update(seen_at=Now() - timedelta(hours=1))
    door.post(f"/site/runs/{run['id']}/lease?fence={run['fence']}")
    assert Worker.objects.get().seen_at > database_now() - timedelta(minutes=1)


@pytest.mark.parametrize("name", ("", "machine", "machine:7", "a/machine:7:1", "m" * 97 + ":7:1"))
def test_a_worker_says_host_process_and_thread(name: str, admin: Member, site: Site) -> None:
    answer = door_of(admin, site).post("/site/claims", {**ASKED, "worker": name})
    assert (answer.status_code, answer.json()["field"]) == (422, "worker")
    assert not Worker.objects.exists()


def test_processes_of_two_sites_that_are_called_alike_are_two(settings: Any) -> None:
    for name in ("berlin", "oslo", ""):
        settings.BENCHHUB_SITE = name
        Presence("worker", ["runs"], 4).show()
        assert worker_name().startswith(f"{Worker.objects.get(site=name).process}:")
    assert len({row.host_and_pid for row in Worker.objects.all()}) == 1
