"""A system of several hosts: started one behind the other, each member tuned, watched, put back and proven."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from agents import events as e
from agents.base.errors import ConnectError
from agents.base.session import Session
from agents.fingerprint import fingerprint
from agents.plan import build_plan
from agents.record import Record
from agents.remote.ssh import connect
from agents.running.tuning import MEMBER, host_steps
from agents.spec import ApplicationDocument, HostAddress, RunSpec
from agents.system import with_places
from tests.agents.run_lab import (
    Lab,
    Watched,
    assert_left_as_it_was,
    die_after,
    file_step,
    free_port,
    lab,
    lab_hosts,
    needs_wrk,
    port_is_free,
    stored,
)
from tests.agents.specs import address, make_spec
from tests.sshd import SshdHost, running_sshd

__all__ = ["lab", "lab_hosts"]  # fixtures

NAP = {"kind": "command", "argv": ["true"]}


def system(*members: dict[str, Any], role: str = "web", server: dict[str, Any] | None = None) -> ApplicationDocument:
    return ApplicationDocument.model_validate({"server": {**NAP, **(server or {})}, "role": role, "members": members})


def member(role: str, port: int = 5432, **more: Any) -> dict[str, Any]:
    after = {"after": more.pop("after")} if "after" in more else {}
    return {"role": role, "server": {**NAP, "port": port, **more}, **after}


def placed(application: ApplicationDocument, **hosts: HostAddress) -> RunSpec:
    body = make_spec().model_dump(mode="json")
    body["application"] |= application.model_dump(mode="json")
    body["members"] = [{"role": role, "host": host.model_dump()} for role, host in hosts.items()]
    return RunSpec.model_validate(body)


def test_a_single_server_is_written_down_as_before_there_were_members() -> None:
    spec = make_spec()
    assert set(spec.model_dump()) == {"application", "recipe", "workload", "sut", "drivers", "monitor_interval_s"}
    assert set(spec.model_dump()["application"]) == {"name", "version", "description", "server"}
    assert "role" not in e.to_json(e.SnapshotTaken("before", {}))
    assert e.to_json(e.SnapshotTaken("before", {}, "database"))["role"] == "database"


ORDERS: list[tuple[tuple[dict[str, Any], ...], str, tuple[str, ...]]] = [
    ((member("database"), member("cache", 6379)), "", ("database", "cache", "sut")),
    ((member("app", 9000, argv=["${database.address}"]), member("database")), "", ("database", "app", "sut")),
    ((member("replica", after=["web"]), member("database")), "", ("database", "sut", "replica")),
    ((member("replica", argv=["${web.port}"]),), "", ("sut", "replica")),
    ((member("app", argv=["${web.port}"], after=[]),), "${app.address}", ("app", "sut")),
]


@pytest.mark.parametrize(("members", "argument", "order"), ORDERS)
def test_a_member_starts_behind_those_whose_address_it_uses(
    members: tuple[dict[str, Any], ...], argument: str, order: tuple[str, ...]
) -> None:
    application = system(*members, server={"argv": ["true", argument]})
    spec = placed(application, **{one["role"]: address(one["role"]) for one in members})
    assert tuple(part.role for part in spec.parts_in_order) == order
    assert tuple(spec.hosts)[: len(members) + 1] == ("sut", *(one["role"] for one in members))
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ((member("database"), member("database")), "two of them are called database"),
        ((member("web"),), "two of them are called web"),
        ((member("driver2"),), "BenchHub's own word"),
        ((member("sut"),), "BenchHub's own word"),
        ((member("loadbalancers"),), "should match pattern"),
        ((member("app", argv=["${databse.address}"]),), r"\$\{databse.address\} names no member; there are web, app"),
        ((member("app", after=["cache"]),), "cache is no other member of web, app"),
        ((member("a", argv=["${b.port}"]), member("b", argv=["${a.port}"])), "wait for each other; say with `after`"),
    ],
)
def test_a_system_that_cannot_be_started_is_refused(members: tuple[dict[str, Any], ...], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        system(*members)


def test_addresses_and_ports_of_members_are_filled_in() -> None:
    application = system(
        member("database", argv=["listen", "${database.port}"]),
        server={"argv": ["run", "tcp://${database.address}:${ database.port }/", "${database.address}", "${HOME}"]},
    )
    filled = application.placed({"sut": "10.0.0.1", "database": "fd00::2"})
    assert filled.server.model_dump()["argv"] == ("run", "tcp://[fd00::2]:5432/", "fd00::2", "${HOME}")
    assert filled.members[0].server.model_dump()["argv"] == ("listen", "5432")
    assert with_places({"a": ["${server.port}"]}, {"web": ("x", 1)}) == {"a": ["${server.port}"]}


def test_a_member_with_tls_is_asked_over_https() -> None:
    spec = placed(
        system(member("cache", 6379), {"role": "app", "server": {"kind": "nginx", "port": 8443, "tls": True}}),
        cache=address("one"),
        app=address("fd00::2"),
    )
    at = {role: host.address for role, host in spec.hosts.items()}
    assert spec.part("cache").ready_urls == (f"http://{at['cache']}:6379/",)
    assert spec.part("app").ready_urls[0].startswith("https://")


def test_every_member_needs_a_host_and_no_two_may_want_one_port() -> None:
    application = system(member("database"), member("cache", 6379))
    with pytest.raises(ValidationError, match="in its order: database, cache"):
        placed(application, database=address("one"))
    same = system(member("database"), member("cache", 5432))
    with pytest.raises(ValidationError, match="database and cache both want port 5432 of one"):
        placed(same, database=address("one"), cache=address("one"))


def test_steps_of_members_have_places_of_their_own() -> None:
    spec = placed(system(member("database")), database=address("db"))
    body = spec.model_dump(mode="json")
    body["recipe"]["steps"] = [{"kind": "sysctl", "values": {"vm.swappiness": "1"}}]
    body["members"][0]["steps"] = [{"kind": "limits", "nofile": 4096}, *body["recipe"]["steps"]]
    spec = RunSpec.model_validate(body)
    assert list(host_steps(spec)) == [1]
    assert list(host_steps(spec.part("database"))) == [MEMBER + 2]
    tune = next(phase for phase in build_plan(spec).phases if phase.name == "tune")
    assert [item.host for item in tune.items] == ["sut", "sut", "db", "db", "db"]


def test_the_hardware_of_each_member_is_part_of_the_series() -> None:
    spec = placed(system(member("database")), database=address("db"))

    def of(**digests: str) -> str:
        return fingerprint(spec, driver_version="4", profile_digest="a", member_digests=digests)

    assert of(database="x") == of(database="x") != of(database="y")


# With real hosts.

PROXY = """
import sys, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = urllib.request.urlopen("http://" + sys.argv[2] + self.path, timeout=5).read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Proxy).serve_forever()
"""


@pytest.fixture(scope="module")
def member_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshdHost]:
    with running_sshd(tmp_path_factory.mktemp("member")) as host:
        yield host


@pytest.fixture
def database(member_host: SshdHost, lab: Lab) -> Iterator[SshdHost]:
    """The host of the member; nothing of a run may stay on it."""
    yield member_host
    shutil.rmtree(member_host.home / ".benchhub", ignore_errors=True)
    for claim in member_host.home.glob("benchhub-claim.*"):
        claim.unlink()


@dataclass
class Several(Watched):
    """A run whose member lives on a host of its own; `refused` are hosts that take no login from now on."""

    database: SshdHost | None = None
    refused: set[str] = field(default_factory=set)
    opened: dict[str, list[Session]] = field(default_factory=dict)

    async def connect(self, address: HostAddress) -> Session:
        if address.name in self.refused:
            raise ConnectError(f"{address.name} does not answer")
        if address.name != "db":
            return await super().connect(address)
        assert self.database is not None
        session = await connect(self.database.login("db"), self.database.private_key)
        self.opened.setdefault("db", []).append(session)
        return session


def spec_of(lab: Lab, database: SshdHost, *, on_database: tuple[dict[str, Any], ...] = (), seconds: int = 1) -> RunSpec:
    """A proxy on the SUT before a server of files on the host of the member, both tuned."""
    port = free_port()
    body = lab.spec(file_step(lab), phases=(("measure", seconds),)).model_dump(mode="json")
    files = {"kind": "command", "files": {"index.html": "hello\n"}, "port": port}
    behind = files | {
        "argv": [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "${database.port}"],
        "ready": {"body_contains": "hello", "timeout_s": 600},
        "cpus": body["application"]["server"]["cpus"],
    }
    application = ApplicationDocument.model_validate(
        {
            "server": body["application"]["server"]
            | {"argv": [sys.executable, "-u", "proxy.py", "${web.port}", "${database.address}:${database.port}"]}
            | {"files": {"proxy.py": PROXY}, "cpus": ""},
            "role": "web",
            "members": [{"role": "database", "server": behind}],
        }
    )
    addresses = {"sut": body["sut"]["address"], "database": database.address}
    body["application"] |= application.placed(addresses).model_dump(mode="json")
    host = {"address": database.address, "port": database.port, "user": database.user, "host_key": database.host_key}
    body["members"] = [{"role": "database", "host": {"name": "db", **host}, "steps": on_database}]
    cpus = sorted(os.sched_getaffinity(0))
    body["workload"]["cpus"] = str(cpus[-1])
    body["application"]["server"]["cpus"] = str(cpus[0])
    return RunSpec.model_validate(body)


def ports(spec: RunSpec) -> list[int]:
    return [part.server.port for part in spec.parts]


def assert_all_as_before(lab: Lab, database: SshdHost, spec: RunSpec, record: Record) -> None:
    assert_left_as_it_was(lab, record)
    assert list((database.home / ".benchhub/runs").glob("*")) == []
    assert list(database.home.glob("benchhub-claim.*")) == []
    assert all(map(port_is_free, ports(spec)))


@pytest.fixture(autouse=True)
def _one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """All hosts of these tests are one machine with few CPUs; what sees that is tried by itself."""
    monkeypatch.setattr("agents.runner.check_cpus", lambda spec, record: None)


@needs_wrk
async def test_a_system_runs_and_every_host_is_proven(lab: Lab, database: SshdHost) -> None:
    spec = spec_of(lab, database, on_database=(file_step(lab, "database.conf"),))
    watched = Several(lab, database=database)
    record = await watched.run(spec)
    assert record.failed is None, watched.log
    started = [event.name for event in watched.of(e.JobStarted)]
    assert started[:2] == ["server-database", "server"], "the web server starts once the database is ready"
    ended = [event.name for event in watched.of(e.JobEnded) if "server" in event.name]
    assert ended == ["server", "server-database"]
    assert list(record.intended) == [0, 1, MEMBER, MEMBER + 1]
    assert [event.index for event in watched.of(e.StepReverted)] == [MEMBER + 1, MEMBER, 1, 0]
    assert record.intended[MEMBER + 1].title.startswith("database: ")
    assert record.snapshots.keys() == {(role, when) for role in ("sut", "database") for when in ("before", "after")}
    assert {sample.role for sample in watched.of(e.Samples)} == {"sut", "database", "driver"}
    assert record.configuration is not None
    values = record.configuration.values
    assert {"process.cpus", "members.database.process.cpus", "members.database.host.cpu.online"} <= values.keys()
    assert "server-database.log" in watched.kept
    assert_all_as_before(lab, database, spec, record)


@needs_wrk
async def test_a_member_that_is_killed_under_load_is_named_and_all_hosts_are_proven(
    lab: Lab, database: SshdHost
) -> None:
    spec, watched = spec_of(lab, database, seconds=3), Several(lab, database=database)

    def kill(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            pid = Record.fold(watched.events).started_jobs["server-database"].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)

    watched.on_event = kill
    record = await watched.run(spec)
    assert record.failed is not None
    assert record.failed.message.startswith("database on db ended during the load with exit status 137")
    assert_all_as_before(lab, database, spec, record)


@needs_wrk
async def test_a_member_whose_host_dies_is_away_while_the_others_are_proven(lab: Lab, database: SshdHost) -> None:
    spec = spec_of(lab, database, on_database=(file_step(lab, "database.conf"),), seconds=2)
    watched = Several(lab, database=database, patience_s=0.0)

    async def emit(event: e.AnyEvent) -> None:
        watched.events.append(event)
        if isinstance(event, e.LoadStarted):
            watched.refused.add("db")
            for session in watched.opened.pop("db"):
                await session.close()

    watched.emit = emit  # type: ignore[method-assign]
    record = await watched.run(spec)
    assert record.failed is not None
    assert record.restored is not None
    assert record.restored.away == ("database",)
    assert record.restored.differences.keys() == {"database"}
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert not lab.directory(lab.sut).exists()
    assert not lab.directory(lab.driver).exists()

    again = Several(lab, database=database, fence=2, events=list(watched.events))
    record = Record.fold(again.events)
    await again.runner(spec, record).restore_again(roles=("database",))
    assert_all_as_before(lab, database, spec, record)


@needs_wrk
async def test_a_member_that_refuses_to_be_put_back_leaves_the_others_proven(lab: Lab, database: SshdHost) -> None:
    spec, watched = (
        spec_of(lab, database, on_database=(file_step(lab, "database.conf"),)),
        Several(lab, database=database),
    )

    def meddle(event: e.AnyEvent) -> None:
        if isinstance(event, e.LoadStarted):
            (lab.etc / "database.conf").write_text("foreign\n")

    watched.on_event = meddle
    record = await watched.run(spec)
    assert record.restored is not None
    assert record.restored.differences.keys() == {"database"}
    assert record.restored.away == ()
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert not lab.directory(lab.sut).exists()
    assert (database.home / ".benchhub/runs" / watched.key / "journal/restore.sh").exists()

    again = Several(lab, database=database, fence=2, events=list(watched.events))
    record = Record.fold(again.events)
    await again.runner(spec, record).restore_again(roles=("database",), force=True)
    assert_all_as_before(lab, database, spec, record)


@needs_wrk
async def test_a_member_on_the_host_of_the_sut_shares_its_journal(lab: Lab) -> None:
    """Both change one file: undone in reverse, it is as it was before the first of them."""
    spec = spec_of(lab, lab.sut, on_database=(file_step(lab, content="by the database\n"),))
    body = spec.model_dump(mode="json")
    undo = body["members"][0]["steps"][0]["arguments"]
    undo[2] = "tuned\n"  # what the SUT's own step has made of it
    spec = RunSpec.model_validate(body)
    watched = Several(lab, database=lab.sut)
    record = await watched.run(spec)
    assert record.failed is None, watched.log
    assert_left_as_it_was(lab, record)
    assert list(lab.sut.home.glob("benchhub-claim.*")) == []


@needs_wrk
async def test_the_worker_may_die_behind_every_event_of_a_system(lab: Lab, database: SshdHost) -> None:
    spec = spec_of(lab, database, on_database=(file_step(lab, "database.conf"),))
    whole = Several(lab, database=database)
    await whole.run(spec)
    steps = len(stored(whole.events))
    for fence, count in enumerate(range(6, steps - 1, 7)):
        first = Several(lab, database=database, fence=2 * fence + 1)
        events = await die_after(lab, spec, count, watched=first)
        second = Several(lab, database=database, fence=2 * fence + 2, events=events)
        record = await second.run(spec, Record.fold(events))
        assert_all_as_before(lab, database, spec, record)
        lab.witness.unlink(missing_ok=True)


async def test_a_member_that_never_gets_ready_is_named(lab: Lab, database: SshdHost) -> None:
    body = spec_of(lab, database).model_dump(mode="json")
    server = body["application"]["members"][0]["server"]
    server["ready"] |= {"body_contains": "good bye", "timeout_s": 0.5}
    spec = RunSpec.model_validate(body)
    watched = Several(lab, database=database)
    record = await watched.run(spec)
    assert record.failed is not None
    assert "database on db was not ready" in record.failed.message
    assert "server" not in record.jobs, "the web server waits for it"
    assert_all_as_before(lab, database, spec, record)
