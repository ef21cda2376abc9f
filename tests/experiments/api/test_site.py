"""The door of a site's workers: what its token opens, whose runs it shows, and that nothing is stored twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models.functions import Now
from django.test import Client

from agents import events as e
from agents.events import to_json
from agents.facts.access import Access
from agents.remote.address import new_key_pair
from agents.site.wire import PROTOCOL
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, DryRun, Host, Member, Role, Run, Site, Team, Worker
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.canaries import request_canaries
from experiments.registry.hosts.check import perform_check
from experiments.registry.hosts.inventory import add_host, request_check, update_host
from experiments.registry.hosts.quarantine import restore_state
from experiments.registry.hosts.site_tokens import issue_as_asked
from experiments.registry.hosts.sites import add_site, find_site
from experiments.registry.teams.tokens import issue_for_site
from experiments.running.executing.dry_run import perform_dry_run
from experiments.running.executing.recorder import Recorder
from experiments.running.pulling.checks import TAKES
from experiments.running.queue.dispatch import claim_next
from experiments.running.queue.leases import lost_runs
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import ready_host

pytestmark = pytest.mark.django_db

ASKED = {"protocol": PROTOCOL, "version": settings.VERSION, "worker": "machine:7:1", "slots": 2, "wait_s": 0}


@pytest.fixture
def site() -> Site:
    return add_site("berlin", keys_stay=True)


def door_of(member: Member, site: Site) -> ApiClient:
    _, text = issue_for_site(member, site, name="worker")
    return ApiClient(f"Bearer {text}", Client())


@pytest.fixture
def door(admin: Member, site: Site) -> ApiClient:
    return door_of(admin, site)


@pytest.fixture
def queued(admin: Member, site: Site, stock: dict[str, Any]) -> Run:
    """A run that waits at the site."""
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}
    hosts = [ready_host(admin, name) for name in ("far-sut", "far-driver")]
    Host.objects.filter(pk__in=[host.pk for host in hosts]).update(site=site, private_key=b"", public_key="")
    for host in hosts:
        host.refresh_from_db()
    return launch_run(admin, Choice(**documents, sut=hosts[0], drivers=[hosts[1]]))


def dry_run_of(run: Run) -> DryRun:
    """Asked for with the hosts and the choice of a run."""
    assert run.sut is not None
    assert run.drivers is not None
    return DryRun.objects.create(team=run.team, sut=run.sut, drivers=run.drivers, spec=run.spec)


def claim(door: ApiClient) -> Any:
    answer = door.post("/site/claims", ASKED)
    assert answer.status_code == 200, answer.content
    return answer.json()["run"]


def lines(*events: e.AnyEvent) -> bytes:
    return b"\n".join(json.dumps(to_json(event)).encode() for event in events)


def send(door: ApiClient, run: Any, first: int, *events: e.AnyEvent, fence: int | None = None) -> Any:
    path = f"/site/runs/{run['id']}/events?fence={fence or run['fence']}&first={first}"
    return door.post(path, lines(*events), content_type="application/octet-stream")


def test_a_run_of_the_site_is_given_with_its_way_and_without_any_key(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    queued.refresh_from_db()
    assert (given["id"], given["fence"], given["work"]) == (queued.pk, queued.fence, "run")
    assert (queued.state, queued.owner.partition("/")[2]) == ("preparing", ASKED["worker"])
    way = given["ways"]["far-sut"]
    assert queued.sut is not None
    assert way["host_key"] == queued.sut.host_key
    assert "private_key" not in json.dumps(given)
    assert claim(door) is None
    assert queued.owner == f"{Worker.objects.get(site='berlin').process}:1"


@pytest.mark.parametrize("path", ("/runs", "/hosts", "/me", "/queue", "/tokens", "/audit"))
def test_the_token_opens_nothing_else(path: str, door: ApiClient) -> None:
    assert door.get(path).status_code == 403


@pytest.mark.parametrize("scope", ("read", "launch", "write", "admin"))
def test_no_other_token_opens_the_door(scope: str, admin: Member, site: Site, make_api: MakeApi) -> None:
    assert make_api(admin, scope).post("/site/claims", ASKED).status_code == 403


def test_no_session_opens_the_door(admin: Member, site: Site, client: Client) -> None:
    client.force_login(admin.user)
    assert client.get("/api/v1/site").status_code == 401


def test_the_token_of_somebody_who_is_no_admin_any_more_is_refused(admin: Member, door: ApiClient) -> None:
    Member.objects.filter(pk=admin.pk).update(role=Role.EDITOR)
    assert door.get("/site").status_code == 403


def test_runs_of_another_team_and_of_another_site_are_not_seen(
    admin: Member, other_admin: Member, site: Site, queued: Run
) -> None:
    strangers = (door_of(other_admin, site), door_of(admin, add_site("oslo", keys_stay=True)))
    claimed = claim_next("machine:7:1", "berlin", admin.team_id)
    assert claimed is not None
    run = {"id": claimed.pk, "fence": claimed.fence}
    for door in strangers:
        assert claim(door) is None
        assert send(door, run, 1, e.PhaseStarted("connect")).status_code == 404
        for path in ("lease", "end", "admit", "leftovers", "readings"):
            body = {"how": "give_up"} if path == "end" else {"shown": {}, "role": "sut", "found": [], "readings": []}
            keys = {"admit": ("shown",), "leftovers": ("role", "found"), "readings": ("readings",)}.get(path, ("how",))
            sent = {key: value for key, value in body.items() if key in keys}
            answer = door.post(f"/site/runs/{run['id']}/{path}?fence={run['fence']}", sent)
            assert answer.status_code == 404, (path, answer.content)
        for path in ("files?name=a&media_type=text/plain&sha256=" + "0" * 64, "profiles?taken={}"):
            assert door.put(f"/site/runs/{run['id']}/{path}&fence={run['fence']}", b"x").status_code in (404, 422)
    claimed.refresh_from_db()
    assert (claimed.state, claimed.last_seq, claimed.artifacts.count()) == ("preparing", 0, 0)


def test_a_batch_that_comes_twice_changes_nothing_and_a_gap_is_refused(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    batch = (e.PhaseStarted("connect", 1.0), e.Logged("runner", ("one\0",)), e.PhaseFinished("connect", 0.5))
    for _ in range(2):
        assert send(door, given, 1, *batch).json() == {"last_seq": 3, "cancelled": False}
    assert send(door, given, 2, *batch[1:], e.PhaseStarted("facts", 2.0)).json()["last_seq"] == 4
    gap = send(door, given, 6, e.PhaseStarted("facts", 2.0))
    assert (gap.status_code, gap.json()["field"]) == (409, "first")
    assert list(queued.events.order_by("seq").values_list("seq", "kind")) == [
        (1, "phase_started"), (2, "logged"), (3, "phase_finished"), (4, "phase_started"),
    ]  # fmt: skip


def test_events_have_the_time_at_which_they_happened_and_none_is_before_another(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    Run.objects.filter(pk=queued.pk).update(started_at=Now() - timedelta(hours=1))
    path = f"/site/runs/{queued.pk}/events?fence={given['fence']}"

    def tell(first: int, *told: tuple[e.AnyEvent, Any]) -> Any:
        body = b"\n".join(json.dumps({**to_json(event), "age_s": age_s}).encode() for event, age_s in told)
        return door.post(f"{path}&first={first}", body, content_type="application/octet-stream")

    line, load = e.Logged("server", ("x",)), e.LoadStarted(0, True, 10, 1.0)
    assert tell(1, (line, 1e300), (e.PhaseStarted("measure", 1.0), 600), (load, 590.25), (line, 0)).status_code == 200
    assert tell(5, (line, 30.0), (line, -5)).status_code == 200
    send(door, given, 7, line)  # as a worker of before
    rows = list(queued.events.order_by("seq"))
    queued.refresh_from_db()
    started, phase, loaded, now, late, negative, of_before = (row.at for row in rows)
    assert started == queued.started_at
    assert timedelta(seconds=600) <= now - phase <= timedelta(seconds=601)
    assert loaded - phase == timedelta(seconds=9.75)
    assert queued.measured_at == loaded
    assert now == late <= negative <= of_before <= database_now()
    assert all("age_s" not in row.payload for row in rows)
    for wrong in ("long", None, float("nan"), [1], 10**400):
        assert tell(8, (line, wrong)).json()["field"] == "events"


def test_an_older_fence_is_refused_everywhere(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    Run.objects.filter(pk=queued.pk).update(owner="", lease_until=None)
    Run.objects.filter(pk=queued.pk).update(fence=given["fence"] + 1)
    refused = [send(door, given, 1, e.PhaseStarted("connect"))]
    for path, body in (("lease", None), ("end", {"how": "conclude"}), ("admit", {"shown": {}})):
        refused.append(door.post(f"/site/runs/{queued.pk}/{path}?fence={given['fence']}", body))
    query = f"fence={given['fence']}&name=a&media_type=text/plain&sha256={'0' * 64}"
    refused.append(door.put(f"/site/runs/{queued.pk}/files?{query}", b"x"))
    assert [(one.status_code, one.json()["field"]) for one in refused] == [(409, "fence")] * 5


def test_events_that_are_none_are_refused_whole(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    path = f"/site/runs/{queued.pk}/events?fence={given['fence']}&first=1"
    for body in (b"{}", b"[]", b"not json", lines(e.PhaseStarted("connect")) + b'\n{"kind": "unheard_of"}'):
        answer = door.post(path, body, content_type="application/octet-stream")
        assert (answer.status_code, answer.json()["field"]) == (422, "events")
    assert queued.events.count() == 0


def test_a_file_is_kept_once_it_is_whole(door: ApiClient, queued: Run) -> None:
    given, content = claim(door), b"a report\n" * 1000

    def put(sha256: str, name: str = "report.txt") -> Any:
        query = f"fence={given['fence']}&name={name}&media_type=text/plain&sha256={sha256}"
        return door.put(f"/site/runs/{queued.pk}/files?{query}", content, content_type="application/octet-stream")

    damaged = put(hashlib.sha256(b"other").hexdigest())
    assert (damaged.status_code, queued.artifacts.count()) == (409, 0)
    for _ in range(2):
        assert put(hashlib.sha256(content).hexdigest()).status_code == 200
    assert [one.sha256 for one in queued.artifacts.all()] == [hashlib.sha256(content).hexdigest()]
    assert put(hashlib.sha256(content).hexdigest(), "a%2Fb").status_code == 422


def test_a_cancel_is_told_with_the_lease(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    path = f"/site/runs/{queued.pk}/lease?fence={given['fence']}"
    assert door.post(path).json()["cancelled"] is False
    Run.objects.filter(pk=queued.pk).update(cancel_requested_at=queued.queued_at)
    assert door.post(path).json()["cancelled"] is True


def test_a_run_that_is_let_go_is_given_again_with_its_events_and_a_greater_fence(door: ApiClient, queued: Run) -> None:
    first = claim(door)
    send(door, first, 1, e.PhaseStarted("connect", 1.0), e.Logged("runner", ("x",)))
    assert door.post(f"/site/runs/{queued.pk}/end?fence={first['fence']}", {"how": "let_go"}).status_code == 200
    again = claim(door)
    assert again["fence"] > first["fence"]
    assert (again["attempts"], again["last_seq"]) == (2, 2)
    assert [one["kind"] for one in again["events"]] == ["phase_started"]


def test_the_lease_of_a_dead_worker_is_doubted_by_whoever_asks_for_work_and_then_the_run_is_given_again(
    door: ApiClient, queued: Run
) -> None:
    """Beat does that elsewhere; where it stands still, nobody else would at a site of such workers."""
    claim(door)
    other = {**ASKED, "worker": "machine:8:1"}
    assert door.post("/site/claims", other).json()["run"] is None  # a worker that was seen just now, as with live runs
    long_ago = database_now() - timedelta(hours=1)
    Run.objects.filter(pk=queued.pk).update(lease_until=long_ago)
    assert door.post("/site/claims", other).json()["run"] is None  # who lives may renew it yet
    assert Run.objects.filter(pk=queued.pk, doubted_at__isnull=False).update(doubted_at=long_ago) == 1
    assert door.post("/site/claims", other).json()["run"]["attempts"] == 2


LOST = {"lease_until": Now() - timedelta(minutes=1), "doubted_at": Now() - timedelta(minutes=1)}


@pytest.mark.parametrize(
    ("holds", "let_go", "attempts"),
    (
        (((0, 0),), False, 1),
        (((7, 7), (0, 0)), False, 1),
        ((), False, 2),
        (((0, -1),), False, 2),
        (((1, 0),), False, 2),
        (((0, 0),), True, 2),
    ),
    ids=("held", "held beside another", "not told", "under an older fence", "another run", "let go"),
)
def test_after_a_cut_that_outlives_the_lease_a_worker_is_not_given_what_it_still_works_on(
    holds: tuple[tuple[int, int], ...], let_go: bool, attempts: int, door: ApiClient, queued: Run
) -> None:
    given = claim(door)
    if let_go:
        door.post(f"/site/runs/{queued.pk}/end?fence={given['fence']}", {"how": "let_go"})
    Run.objects.filter(pk=queued.pk).update(**LOST)
    told = [{"run": given["id"] + run, "fence": given["fence"] + fence} for run, fence in holds]
    answer = door.post("/site/claims", {**ASKED, "worker": "machine:7:2", "holds": told})
    queued.refresh_from_db()
    assert ((answer.json()["run"] or given)["attempts"], queued.attempts) == (attempts, attempts)
    line = e.Logged("server", ("read during the cut",))
    assert send(door, given, 1, line).status_code == (200 if attempts == 1 else 409)


def test_a_worker_of_another_team_or_site_holds_no_run(
    admin: Member, other_admin: Member, site: Site, door: ApiClient, queued: Run
) -> None:
    given = claim(door)
    Run.objects.filter(pk=queued.pk).update(**LOST)
    told = {**ASKED, "holds": [{"run": given["id"], "fence": given["fence"]}]}
    for stranger in (door_of(other_admin, site), door_of(admin, add_site("oslo", keys_stay=True))):
        assert stranger.post("/site/claims", told).json()["run"] is None
    assert lost_runs().filter(pk=queued.pk).exists()


def test_a_way_back_that_outlives_a_cut_is_not_begun_again_by_its_own_worker(door: ApiClient, queued: Run) -> None:
    first = claim(door)
    door.post(f"/site/runs/{queued.pk}/end?fence={first['fence']}", {"how": "give_up", "message": "no"})
    dirty = Host.objects.filter(name="far-sut")
    again = restore_state("pending", "Waiting for a worker.")
    dirty.update(state=Host.State.DIRTY, dirty_run=queued, leased_by=None, last_restore=again)
    given = claim(door)
    assert given["work"] == "restore"
    Run.objects.filter(pk=queued.pk).update(lease_until=Now() - timedelta(minutes=1))
    told = {**ASKED, "holds": [{"run": given["id"], "fence": given["fence"]}]}
    assert door.post("/site/claims", told).json()["run"] is None
    assert claim(door) is None
    Run.objects.filter(pk=queued.pk).update(lease_until=Now() - timedelta(minutes=1))
    assert claim(door)["fence"] > given["fence"]


@pytest.mark.parametrize(("left", "lost"), (("", False), ("&left=true", True)), ids=("live", "left"))
def test_events_hold_a_lease_that_is_doubted_unless_their_worker_has_left_the_run(
    left: str, lost: bool, door: ApiClient, queued: Run
) -> None:
    given = claim(door)
    Run.objects.filter(pk=queued.pk).update(**LOST)
    path = f"/site/runs/{queued.pk}/events?fence={given['fence']}&first=1{left}"
    body = lines(e.Logged("server", ("read during the cut",)))
    assert door.post(path, body, content_type="application/octet-stream").json()["last_seq"] == 1
    assert lost_runs().filter(pk=queued.pk).exists() == lost


def test_a_run_whose_machine_is_in_use_goes_back_into_the_queue(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    shown = {"shown": {"sut": asdict(Access(user="bench", boot_id="b1"))}}
    told = door.post(f"/site/runs/{queued.pk}/admit?fence={given['fence']}", shown).json()
    assert told == {"in_use": "", "hint": ""}
    assert door.post(f"/site/runs/{queued.pk}/end?fence={given['fence']}", {"how": "put_back"}).status_code == 200
    queued.refresh_from_db()
    assert (queued.state, queued.attempts) == ("queued", 0)


@pytest.mark.parametrize(
    ("told", "said"),
    (
        ({"version": "0.9.1"}, "this worker is of version 0.9.1: install"),
        ({"version": ""}, "this worker is older: install"),
        ({"protocol": PROTOCOL + 1}, "this worker is another build of it: install"),
        ({"version": "99.0", "protocol": 99, "a_field_of_then": 1}, "this worker is of version 99.0: install"),
    ),
)
def test_a_worker_of_another_version_is_told_what_to_install_and_ends_the_runs_that_it_has(
    told: dict[str, Any], said: str, door: ApiClient, queued: Run
) -> None:
    given = claim(door)
    refused = door.post("/site/claims", {**ASKED, **told})
    assert (refused.status_code, refused.json()["field"]) == (409, "version")
    assert f"{said} {settings.VERSION} at the site" in refused.json()["detail"]
    assert send(door, given, 1, e.PhaseStarted("connect", 1.0)).status_code == 200
    fence = f"fence={given['fence']}"
    assert door.post(f"/site/runs/{queued.pk}/lease?{fence}").status_code == 200
    assert door.post(f"/site/runs/{queued.pk}/end?{fence}", {"how": "put_back"}).status_code == 200
    queued.refresh_from_db()
    assert queued.state == "queued"


def test_only_an_admin_makes_such_a_token_and_it_stands_alone(admin: Member, make_member: Any, site: Site) -> None:
    with pytest.raises(Forbidden):
        issue_for_site(make_member(admin.team, Role.EDITOR), site, name="worker")
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"scopes": ["work", "read"], "site": "berlin"}, "scopes"),
        ({"scopes": ["work"]}, "site"),
        ({"scopes": ["read"], "site": "berlin"}, "site"),
        ({"scopes": ["work"], "site": add_site("hall").name}, "site"),
    )
    for given, field in refused:
        with pytest.raises(RequestError) as told:
            issue_as_asked(admin, name="x", days=1, **given)
        assert told.value.field == field
    issue_as_asked(admin, name="x", days=1, scopes=["work"], site="berlin")
    entry = AuditEntry.objects.get(action="token.issue")
    assert entry.after is not None
    assert entry.after["site"] == "berlin"


def test_keys_stay_at_a_site_of_before_once_its_hosts_are_at_another_one_as_the_refusal_says(admin: Member) -> None:
    reached = add_site("hall")
    given: dict[str, Any] = {"address": "10.1.2.3", "port": 22, "user": "bench", "roles": "both"}
    host = add_host(admin, name="far", site=reached, **given)
    with pytest.raises(RequestError, match=r"sites add NAME --keys-stay.*give its hosts that site.*sites remove hall"):
        issue_as_asked(admin, name="w", days=1, scopes=["work"], site="hall")
    call_command("sites", "add", "yard", "--keys-stay")
    moved = update_host(admin, host, site=find_site("yard"))
    call_command("sites", "remove", "hall")
    assert (bytes(moved.private_key), moved.public_key) == (b"", "")
    _, text = issue_as_asked(admin, name="w", days=1, scopes=["work"], site="yard")
    assert ApiClient(f"Bearer {text}", Client()).get("/site").json()["site"] == "yard"


def test_an_operator_makes_the_token_on_the_command_line(admin: Member, site: Site, capsys: Any) -> None:
    given = {"team": admin.team.slug, "user": admin.user.get_username(), "name": "w", "scopes": "work"}
    call_command("token", "create", **given, site="berlin")
    token = capsys.readouterr().out.strip()
    assert ApiClient(f"Bearer {token}", Client()).get("/site").json()["site"] == "berlin"
    with pytest.raises(CommandError, match="There is no site"):
        call_command("token", "create", **given, site="atlantis")


def test_a_host_whose_keys_stay_has_none_in_the_database(admin: Member, site: Site) -> None:
    given: dict[str, Any] = {"address": "10.1.2.3", "port": 22, "user": "bench", "roles": "both"}
    host = add_host(admin, name="far", site=site, **given)
    assert (bytes(host.private_key), host.public_key) == (b"", "")
    key, _ = new_key_pair("x")
    with pytest.raises(RequestError) as told:
        add_host(admin, name="far-2", site=site, private_key=key, **given)
    assert told.value.field == "private_key"
    moved = add_host(admin, name="near", **given)
    assert bytes(moved.private_key)
    assert bytes(update_host(admin, moved, site=site).private_key) == b""


def test_the_test_of_a_connection_is_the_sites_workers(admin: Member, site: Site, door: ApiClient) -> None:
    host = add_host(admin, name="far", address="10.1.2.3", port=22, user="bench", roles="both", site=site)
    request_check(admin, host)
    perform_check(host.pk)  # a central worker leaves it alone
    given = door.post("/site/claims", ASKED).json()["host"]
    assert (given["id"], given["way"]["address"]) == (host.pk, "10.1.2.3")
    assert door.post("/site/claims", ASKED).json()["host"] is None
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    told = {"asked_at": given["asked_at"], "offered": [key]}
    assert door.post(f"/site/hosts/{host.pk}/seen", told).status_code == 200
    host.refresh_from_db()
    assert host.offered_host_key == key
    assert host.last_check["state"] == "ok"
    assert door.post(f"/site/hosts/{host.pk}/seen", {**told, "failure": "late"}).status_code == 200
    host.refresh_from_db()
    assert host.last_check["state"] == "ok"


def test_a_dry_run_is_made_by_the_sites_worker_and_again_when_that_is_gone(
    admin: Member, site: Site, door: ApiClient, queued: Run
) -> None:
    assert claim(door)  # so that the run is out of the way
    asked = dry_run_of(queued)
    perform_dry_run(asked.pk)  # a central worker leaves it alone
    given = door.post("/site/claims", ASKED).json()["dry_run"]
    assert given["id"] == asked.pk
    assert {role: way["name"] for role, way in given["ways"].items()} == {"sut": "far-sut", "driver": "far-driver"}
    assert door.post("/site/claims", ASKED).json()["dry_run"] is None
    DryRun.objects.update(given_at=database_now() - TAKES)
    assert door.post("/site/claims", ASKED).json()["dry_run"] == given

    path = f"/site/dry-runs/{asked.pk}/plan"
    assert door.post(path, {}).json()["field"] == "plan"
    assert door.post(path, {"plan": {"phases": "all"}}).status_code == 422
    phase = {"name": "tune", "title": "Tune", "items": [{"host": "far-sut", "title": "a", "commands": ["true"]}]}
    assert door.post(path, {"plan": {"phases": [phase], "load_s": 5, "estimate_s": 15}}).status_code == 200
    assert door.post(path, {"failure": "late"}).status_code == 200
    asked.refresh_from_db()
    assert (asked.state, asked.message) == ("ready", "")
    assert asked.plan is not None
    assert asked.plan["phases"][0]["items"][0]["commands"] == ["true"]


def test_a_dry_run_beside_a_measurement_is_refused_and_that_of_another_team_is_not_there(
    admin: Member, site: Site, door: ApiClient, queued: Run, make_member: Any
) -> None:
    assert claim(door)
    Run.objects.update(state=Run.State.MEASURING)
    asked = dry_run_of(queued)
    assert door.post("/site/claims", ASKED).json()["dry_run"] is None
    asked.refresh_from_db()
    assert (asked.state, "is being measured by run #" in asked.message) == ("failed", True)
    stranger = door_of(make_member(Team.objects.create(slug="other", name="Other")), site)
    assert stranger.post(f"/site/dry-runs/{asked.pk}/plan", {"failure": "x"}).status_code == 404


def test_checks_on_request_are_refused_where_keys_stay(admin: Member, site: Site, queued: Run) -> None:
    Host.objects.update(leased_by=None)
    with pytest.raises(Conflict, match="before an experiment, not on request"):
        request_canaries(admin, Host.objects.get(name="far-sut"))


def test_what_no_look_brings_is_refused(admin: Member, site: Site, door: ApiClient) -> None:
    host = add_host(admin, name="far", address="10.1.2.3", port=22, user="bench", roles="both", site=site)
    request_check(admin, host)
    asked_at = door.post("/site/claims", ASKED).json()["host"]["asked_at"]
    answer = door.post(f"/site/hosts/{host.pk}/seen", {"asked_at": asked_at, "offered": ["no key"]})
    assert (answer.status_code, answer.json()["field"]) == (422, "offered")


def test_recorded_events_are_the_same_whoever_stores_them(door: ApiClient, queued: Run) -> None:
    given = claim(door)
    events = (e.PhaseStarted("connect", 1.0), e.PhaseFinished("connect", 0.5))
    send(door, given, 1, *events)
    assert Recorder(queued.pk, given["fence"]).record().finished_phases == {"connect"}
