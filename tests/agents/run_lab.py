"""Two SSH hosts with a small server and a load tool that counts its starts, and a run that can be watched."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents import events as e
from agents.base.installation import UNNAMED, Installation
from agents.base.session import Session
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.remote.ssh import connect
from agents.runner import Runner
from agents.running.control import Control, KeepReadings
from agents.spec import HostAddress, RunSpec
from tests import needs
from tests.agents.specs import make_spec
from tests.sshd import SshdHost, exists, running_sshd

needs_wrk = needs.program("wrk")

KEY = "r1-65f0"
PORT_RANGES, PORTS_OF_EACH = 8, 2_500
LIBRARIES = Path(os.environ.get("BENCHHUB_PROFILERS") or Path.home() / ".local/share/benchhub/cache/profilers")
"""The jars of profilers, as bin/get-profilers puts them."""
SERVER_XML = '<Server port="8005"><Service name="a"><Connector port="8080"/></Service></Server>\n'

# Counts its starts, so that a second load is seen; what it becomes is the real wrk, which takes a breath before each
# request: no test here is about how many there are, and all others want the CPUs.
WRK = """#!/bin/sh
[ "$1" = -v ] || echo "$$" >>"{witness}"
exec wrk -s "{pace}" "$@"
"""
PACE = "function delay() return 20 end\n"


@dataclass(frozen=True)
class Lab:
    """Two hosts; `witness` has a line for each start of the load tool, `etc` stands for files of the SUT itself."""

    sut: SshdHost
    driver: SshdHost
    folder: Path
    port: int

    @property
    def witness(self) -> Path:
        return self.folder / "starts"

    @property
    def etc(self) -> Path:
        return self.folder / "etc"

    @property
    def starts(self) -> list[str]:
        return self.witness.read_text().split() if self.witness.exists() else []

    def directory(self, host: SshdHost) -> Path:
        return host.home / ".benchhub/runs" / KEY

    def spec(
        self, *steps: dict[str, Any], phases: tuple[tuple[str, int], ...] = (("measure", 1),), **server: Any
    ) -> RunSpec:
        argv = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", str(self.port)]
        stages = [{"name": kind, "kind": kind, "duration_s": duration_s} for kind, duration_s in phases]
        driver = {"kind": "wrk", "connections": 2, "threads": 1, "binary": str(self.folder / "wrk")}
        cpus = sorted(os.sched_getaffinity(0))
        return make_spec(
            steps=steps,
            server={
                "argv": argv,
                "port": self.port,
                "files": {"index.html": "hello\n", "conf/server.xml": SERVER_XML},
                "ready": {"body_contains": "hello", "timeout_s": 600},
                "cpus": str(cpus[0]),
                **server,
            },
            workload={"driver": driver, "phases": stages, "cpus": str(cpus[-1])},
            sut=address_of("sut", self.sut),
            drivers=(address_of("driver", self.driver),),
        )


def address_of(name: str, host: SshdHost) -> HostAddress:
    return HostAddress(name=name, address=host.address, port=host.port, user=host.user, host_key=host.host_key)


@pytest.fixture(scope="module")
def lab_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshdHost, SshdHost]]:
    with (
        running_sshd(tmp_path_factory.mktemp("sut")) as sut,
        running_sshd(tmp_path_factory.mktemp("driver")) as driver,
    ):
        yield sut, driver


@pytest.fixture
def lab(lab_hosts: tuple[SshdHost, SshdHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    if len(os.sched_getaffinity(0)) == 1:  # no measurement, but enough to see a run go its way
        monkeypatch.setattr("agents.runner.check_cpus", lambda spec, record: None)
    yield make_lab(*lab_hosts, tmp_path)
    for host in lab_hosts:
        _end_what_is_left(host.home / ".benchhub")
        shutil.rmtree(host.home / ".benchhub", ignore_errors=True)
        for claim in host.home.glob("benchhub-claim.*"):
            claim.unlink()


def _end_what_is_left(directory: Path) -> None:
    """Of a run that its test leaves to a newer holder nobody else ends the server."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink().is_relative_to(directory):
                os.kill(int(process.name), signal.SIGKILL)


def free_port() -> int:
    """A port for a server, below those that the kernel gives to clients and to other tests, wrk's among them.

    Tests that run at the same time have ports of their own: one that is free may be another's a moment later.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PORT_RANGES
    while True:
        port = 10_000 + number * PORTS_OF_EACH + secrets.randbelow(PORTS_OF_EACH)
        if port_is_free(port):
            return port


def make_lab(sut: SshdHost, driver: SshdHost, folder: Path) -> Lab:
    lab = Lab(sut, driver, folder, free_port())
    lab.etc.mkdir()
    (lab.etc / "app.conf").write_text("as it was\n")
    wrk, pace = folder / "wrk", folder / "pace.lua"
    pace.write_text(PACE)
    wrk.write_text(WRK.format(witness=lab.witness, pace=pace))
    wrk.chmod(0o755)
    return lab


@dataclass
class Watched:
    """What a runner is given, and what came of it. `on_event` may act at any event, before it is stored."""

    lab: Lab
    fence: int = 1
    events: list[e.AnyEvent] = field(default_factory=list)
    cancelled: bool = False
    on_event: Callable[[e.AnyEvent], None] = lambda event: None
    patience_s: float = 600.0
    deadman_s: int = 600
    installation: Installation = UNNAMED
    key: str = KEY
    kept: dict[str, bytes] = field(default_factory=dict)
    profiles: dict[str, TakenProfile] = field(default_factory=dict)
    keep_readings: KeepReadings | None = None

    async def keep(self, name: str, content: bytes | Path, media_type: str) -> None:
        self.kept[name] = content if isinstance(content, bytes) else await asyncio.to_thread(content.read_bytes)

    async def keep_profile(self, taken: TakenProfile, content: bytes) -> str:
        name = f"profile-{taken.profiler}-{taken.event}"
        self.kept[name], self.profiles[name] = content, taken
        return name

    async def emit(self, event: e.AnyEvent) -> None:
        self.on_event(event)
        self.events.append(event)

    async def connect(self, address: HostAddress) -> Session:
        host = self.lab.sut if address.name == "sut" else self.lab.driver
        return await connect(host.login(address.name), host.private_key)

    def runner(self, spec: RunSpec, record: Record | None = None) -> Runner:
        control = Control(
            self.connect,
            self.emit,
            lambda: self.cancelled,
            self.fence,
            self.patience_s,
            self.deadman_s,
            keep_file=self.keep,
            keep_profile=self.keep_profile,
            libraries=LIBRARIES,
            installation=self.installation,
            keep_readings=self.keep_readings,
        )
        return Runner(self.key, spec, record or Record(), control)

    async def run(self, spec: RunSpec, record: Record | None = None) -> Record:
        await self.runner(spec, record).run()
        return Record.fold(self.events)

    def of(self, kind: type[e.AnyEvent]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def log(self) -> str:
        return "\n".join(line for event in self.of(e.Logged) for line in event.lines)


def port_is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return False
    return True


def assert_left_as_it_was(lab: Lab, record: Record) -> None:
    assert record.restored == e.Restored({})
    assert (lab.etc / "app.conf").read_text() == "as it was\n"
    assert sorted(path.name for path in lab.etc.iterdir()) == ["app.conf"]
    assert not lab.directory(lab.sut).exists()
    assert not lab.directory(lab.driver).exists()
    assert port_is_free(lab.port)
    assert not any(exists(int(pid)) for pid in lab.starts)


def file_step(lab: Lab, name: str = "app.conf", content: str = "tuned\n") -> dict[str, Any]:
    """A file in a directory of the test's own: no root needed when its owner logs in."""
    quoted = str(lab.etc / name)
    return {
        "kind": "command",
        "run": 'printf %s "$2" >"$1.part" && mv "$1.part" "$1"',
        "undo": 'if [ -n "$3" ]; then printf %s "$3" >"$1"; else rm -f "$1"; fi',
        "observe": 'cat "$1" 2>/dev/null || echo absent',
        "expect": content,
        "arguments": [quoted, content, "as it was\n" if name == "app.conf" else ""],
    }


XML_STEP = {
    "kind": "xml_edit",
    "path": "conf/server.xml",
    "edits": [{"op": "set", "select": "Service/Connector", "attributes": {"maxThreads": 8}}],
}
REFUSED = {"kind": "command", "run": ":", "undo": ":", "observe": "echo 1", "expect": "2"}


class WorkerDiedError(BaseException):
    """As when the process is killed: nothing of the runner's own gets to act."""


async def die_when(lab: Lab, spec: RunSpec, kind: type[e.AnyEvent], *, deadman_s: int = 600) -> list[e.AnyEvent]:
    """The events of a run whose worker died when it was about to store the first event of this kind."""
    watched = Watched(lab, deadman_s=deadman_s)

    def die(event: e.AnyEvent) -> None:
        if isinstance(event, kind):
            raise WorkerDiedError

    watched.on_event = die
    with pytest.raises(WorkerDiedError):
        await watched.run(spec)
    return watched.events


async def die_after(lab: Lab, spec: RunSpec, count: int, *, watched: Watched | None = None) -> list[e.AnyEvent]:
    """The events of a run whose worker died right after event `count` was stored."""
    watched = watched or Watched(lab)

    def die(event: e.AnyEvent) -> None:
        if len(stored(watched.events)) > count:
            raise WorkerDiedError

    watched.on_event = die
    with pytest.raises(WorkerDiedError):
        await watched.run(spec)
    return watched.events


def stored(events: list[e.AnyEvent]) -> list[e.AnyEvent]:
    """The events that a record remembers: dying after any other is dying after the one before it."""
    return [event for event in events if not isinstance(event, e.PhaseStarted | e.Samples | e.Logged)]
