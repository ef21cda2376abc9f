"""A run on the lab's hosts, driven by the runner itself: every fault is a few lines, and the invariants judge its end.

    play.at(e.LoadStarted, lambda: play.cut("sut", 1.0))
    record = await play.run(play.spec(*TUNING))
    assert record.failed is None
    await play.assert_restored()

The hosts are laid out as on `tests.faults.stage`, with the witness files in a directory of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import agents.remote.ssh
from agents import events as e
from agents.base.session import Session
from agents.events import to_json
from agents.record import Record
from agents.remote.ssh import connect
from agents.runner import Runner
from agents.running.control import Control
from agents.spec import HostAddress, RunSpec
from benchhub.processes import wait_until
from lab.lab import Lab, LabHost
from tests.agents.specs import make_spec
from tests.faults.evidence import host_values
from tests.faults.invariants import Event, HostStory, RunStory, Story, check
from tests.faults.programs import SERVER, STEP, WITNESS, write_program
from tests.lab.conftest import login
from tests.sshd import eventually

KEY = "r7-fa17"
PORT, CONNECTIONS = 8080, 2
INSIDE = "/srv/stage"
TOKEN = "t1"
SEEN_WITHIN_S = 600
SYSCTL = "net.ipv4.tcp_fin_timeout"

WATCHED = ("/proc/sys/net/ipv4/tcp_fin_timeout", "/sys/devices/system/cpu/online")

HELD: dict[str, Any] = {**STEP, "arguments": [INSIDE, TOKEN]}
FILE: dict[str, Any] = {"kind": "file", "path": f"{INSIDE}/etc/app.conf", "content": "tuned\n"}
SETTING: dict[str, Any] = {"kind": "sysctl", "values": {SYSCTL: "31"}}
CPUS: dict[str, Any] = {"kind": "cpu_online", "online": "0-4"}
TUNING = (HELD, FILE, SETTING, CPUS)
"""Each kind of change that a host keeps: by a command, of a file, of the kernel, of the machine."""
LIGHT = (FILE, SETTING)
"""Enough where the fault does not depend on the kind of change."""


CONNECT_TIMEOUT_S, HASTY_S = 15, 2
"""How long a login may take: as users have it, and once a host is known to stay away."""


@dataclass
class Play:
    """Lab hosts and one run on them. `patience_s` is how long a host may stay away; it is asked at each failure.

    Hosts besides `sut` and `driver` are those of members of a system, each with a server of its own.
    """

    lab: Lab
    patience_s: float = 600.0
    fence: int = 1
    events: list[tuple[e.AnyEvent, int, datetime]] = field(default_factory=list)
    cancelled: bool = False
    befores: dict[str, dict[str, str]] = field(default_factory=dict)
    kept: dict[str, bytes] = field(default_factory=dict)
    _acts: list[tuple[type[e.AnyEvent], dict[str, Any], Callable[[], object]]] = field(default_factory=list)
    _when_lost: dict[str, Callable[[], object]] = field(default_factory=dict)
    _spec: RunSpec | None = None

    def lay_out(self) -> None:
        """What is watched on all hosts, new; nothing of an earlier run is left on them."""
        for host in self.lab.hosts():
            root = self.root(host)
            for folder in (root, host.home / ".benchhub"):
                shutil.rmtree(folder, ignore_errors=True)
            (root / "etc").mkdir(parents=True)
            (root / "etc/app.conf").write_text("as it was\n")
            (root / "etc/app.conf").chmod(0o640)
            (root / "server.py").write_text(SERVER)
            server = f"/usr/bin/python3 {INSIDE}/server.py 0.0.0.0"
            write_program(root / "server", WITNESS.format(root=INSIDE, program=server))
            write_program(root / "wrk", WITNESS.format(root=INSIDE, program="wrk"))
        self.befores = {host.name: self.values(host.name) for host in self.servers}

    @property
    def before(self) -> dict[str, str]:
        return self.befores["sut"]

    @property
    def servers(self) -> tuple[LabHost, ...]:
        """The hosts with a server, the SUT first."""
        return tuple(host for host in self.lab.hosts() if host.name != "driver")

    @property
    def sut(self) -> LabHost:
        return self.lab.host("sut")

    @property
    def driver(self) -> LabHost:
        return self.lab.host("driver")

    def root(self, host: LabHost) -> Path:
        """The watched directory as this machine sees it."""
        return host.disk / "fs" / INSIDE.strip("/")

    def directory(self, name: str) -> Path:
        """The run's own directory on a host, as this machine sees it."""
        return self.lab.host(name).home / ".benchhub/runs" / KEY

    def values(self, name: str = "sut") -> dict[str, str]:
        """What TUNING changes on a host, as it is now."""
        host = self.lab.host(name)
        shown = host.exec("cat", *WATCHED).stdout.decode().splitlines()
        return host_values(self.root(host) / "etc", dict(zip(WATCHED, shown, strict=True)))

    def spec(
        self,
        *steps: dict[str, Any],
        measure_s: int = 1,
        warm_up_s: int = 0,
        binary: str = f"{INSIDE}/wrk",
        data_address: bool = True,
        **server: Any,
    ) -> RunSpec:
        phases = [("warm_up", warm_up_s), ("measure", measure_s)]
        own = {
            "kind": "command",
            "argv": [f"{INSIDE}/server", str(PORT)],
            "port": PORT,
            "files": {"index.html": "hello\n"},
            "ready": {"body_contains": "hello", "timeout_s": 600},
            "cpus": "0",
        }
        members = [host for host in self.servers if host.name != "sut"]
        return make_spec(
            steps=steps,
            server={**own, **server},
            members={host.name: (own, _address(host, data_address), steps) for host in members},
            workload={
                "driver": {"kind": "wrk", "connections": CONNECTIONS, "threads": 1, "binary": binary},
                "phases": [{"name": kind, "kind": kind, "duration_s": s} for kind, s in phases if s],
                "cpus": "1",
            },
            sut=_address(self.sut, data_address),
            drivers=(_address(self.driver, data_address),),
        )

    # What happens, and when.

    def at(self, kind: type[e.AnyEvent], act: Callable[[], object], **fields: Any) -> None:
        """Do it once, when the first event of the kind with these fields is about to be stored."""
        self._acts.append((kind, fields, act))

    def once_loaded(self, act: Callable[[], object]) -> None:
        """Do it once when the load has started and its tool has been seen: a slow tool is told of before it runs."""

        def see() -> None:
            assert wait_until(lambda: self.load_starts > 0, seconds=SEEN_WITHIN_S)
            act()

        self.at(e.LoadStarted, see)

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Do it that many seconds from now, while the run goes on."""
        asyncio.get_running_loop().call_later(seconds, act)

    def cut(self, name: str, seconds: float, *, half_open: bool = False) -> None:
        """The controller loses the host for this long; what runs between the hosts goes on."""
        self.lab.cut(name, half_open=half_open, kinds=("management",))
        self.later(seconds, lambda: self.lab.heal(name))

    def cut_until_lost(self, name: str, *, half_open: bool = False) -> None:
        """The controller loses the host until it has noticed so, and cannot reach it for a while after that."""
        self.lab.cut(name, half_open=half_open, kinds=("management",))
        self.when_lost(name, lambda: self.lab.heal(name))

    def when_lost(self, name: str, act: Callable[[], object]) -> None:
        """Do it a second after the run has told that it lost the host: by then it tries to come back."""
        self._when_lost[name] = act

    def give_up_soon(self) -> None:
        """From now on a host that is away is given up after a second."""
        self.patience_s = 1.0
        agents.remote.ssh.CONNECT_TIMEOUT_S = HASTY_S

    def cancel(self) -> None:
        self.cancelled = True

    async def emit(self, event: e.AnyEvent) -> None:
        told = "\n".join(event.lines) if isinstance(event, e.Logged) else ""
        for name in [name for name in self._when_lost if f"Lost {name}" in told]:
            self.later(1.0, self._when_lost.pop(name))
        for entry in list(self._acts):
            kind, fields, act = entry
            if isinstance(event, kind) and all(getattr(event, name) == value for name, value in fields.items()):
                self._acts.remove(entry)
                act()
        self.events.append((event, self.fence, datetime.now(UTC)))

    async def keep_file(self, name: str, content: bytes | Path, _media_type: str) -> None:
        self.kept[name] = content if isinstance(content, bytes) else await asyncio.to_thread(content.read_bytes)

    async def connect(self, address: HostAddress) -> Session:
        host = self.lab.host(address.name)
        return await connect(login(host), host.private_key)

    def runner(self, spec: RunSpec, record: Record) -> Runner:
        self._spec = spec
        control = _Control(
            self.connect,
            self.emit,
            lambda: self.cancelled,
            self.fence,
            deadman_s=7200,
            keep_file=self.keep_file,
            play=self,
        )
        return Runner(KEY, spec, record, control)

    async def run(self, spec: RunSpec) -> Record:
        await self.runner(spec, self.record).run()
        return self.record

    async def resume(self) -> Record:
        """Another worker takes the run up."""
        assert self._spec is not None
        self.fence += 1
        return await self.run(self._spec)

    async def restore_again(self, *, force: bool = False, roles: tuple[str, ...] | None = None) -> e.Restored:
        """What BenchHub does with a host that was not proven to be as before."""
        assert self._spec is not None
        self.fence += 1
        self.patience_s = 600.0
        agents.remote.ssh.CONNECT_TIMEOUT_S = CONNECT_TIMEOUT_S
        await self.runner(self._spec, self.record).restore_again(force=force, roles=roles)
        return self.restored

    # What came of it.

    @property
    def record(self) -> Record:
        return Record.fold(event for event, _, _ in self.events)

    @property
    def restored(self) -> e.Restored:
        restored = self.record.restored
        assert restored is not None
        return restored

    @property
    def failed(self) -> e.Failed:
        failed = self.record.failed
        assert failed is not None
        return failed

    @property
    def log(self) -> str:
        return "\n".join(line for event, _, _ in self.events if isinstance(event, e.Logged) for line in event.lines)

    def lines(self, host: LabHost, name: str) -> tuple[str, ...]:
        file = self.root(host) / name
        return tuple(file.read_text().splitlines()) if file.exists() else ()

    @property
    def load_starts(self) -> int:
        return len(self.lines(self.driver, "starts"))

    def is_connected(self) -> bool:
        """Whether the load tool has all of its connections to the server."""
        table = self.driver.exec("cat", "/proc/net/tcp").stdout.decode()
        return len(re.findall(rf" [0-9A-F]+:{PORT:04X} 01 ", table)) >= CONNECTIONS

    def story(self) -> Story:
        """The evidence as the invariants want it; a host with differences counts as quarantined."""
        record = self.record
        outcome = "succeeded"
        if record.failed is not None:
            outcome = "cancelled" if record.failed.cancelled else "failed"
        told = enumerate(self._told())
        rows = [Event(seq, event.kind, to_json(event), fence, at) for seq, (event, fence, at) in told]
        run = RunStory(
            number=1,
            token=TOKEN,
            sut="sut",
            drivers=tuple(host.name for host in self.lab.hosts() if host.name != "sut"),
            state="finished" if record.restored is not None else "running",
            outcome=outcome,
            validity="",
            restore="verified" if record.restored == e.Restored({}) else "dirty",
            fence=self.fence,
            attempts=self.fence,
            started_at=self.events[0][2],
            finished_at=self.events[-1][2],
            errors_total=None,
            loads=len(self._spec.workload.phases) if self._spec else 0,
            events=tuple(rows),
            processes=tuple(
                f"{p.pid} {p.name}" for host in self.lab.hosts() for p in host.processes() if _cookies(p.pid)
            ),
        )
        left = record.restored.differences if record.restored else {}
        hosts = tuple(self._host(host, left.get(host.name, ())) for host in self.lab.hosts())
        return Story((run,), hosts)

    def _told(self) -> list[tuple[e.AnyEvent, int, datetime]]:
        """The events but for the tries at the way back that did not succeed: they are of other rows in the product."""
        restored = [at for at, (event, _, _) in enumerate(self.events) if isinstance(event, e.Restored)]
        return self.events[: restored[0] + 1] if restored else self.events

    def _host(self, host: LabHost, differences: tuple[str, ...]) -> HostStory:
        directory = host.home / ".benchhub/runs"
        return HostStory(
            name=host.name,
            state="dirty" if differences else "ready",
            differences=differences,
            before=self.befores.get(host.name, {}),
            after=self.values(host.name) if host.name in self.befores else {},
            starts=self.lines(host, "starts"),
            changes=self.lines(host, "changes"),
            directories=tuple(path.name for path in directory.iterdir()) if directory.exists() else (),
        )

    async def assert_sound(self) -> None:
        """Every invariant holds, and on hosts that count as restored nothing at all is left running.

        The far end of a connection that was cut learns of it only when it next says something: its monitor ends then.
        """
        assert self._spec is not None
        await self.assert_empty(*(host for host in self.lab.hosts() if not self.restored.differences.get(host.name)))
        assert check(self.story()) == []
        assert self.load_starts <= len(self._spec.workload.phases)

    async def assert_empty(self, *hosts: LabHost) -> None:
        """No process is left on these hosts."""
        with contextlib.suppress(AssertionError):
            await eventually(lambda: not any(host.processes() for host in hosts))
        assert [process.argv for host in hosts for process in host.processes()] == []

    async def assert_restored(self) -> None:
        """Proven equal, on all hosts, and in truth."""
        assert self.restored == e.Restored({})
        assert {name: self.values(name) for name in self.befores} == self.befores
        await self.assert_sound()


@pytest.fixture
def play(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Play:
    """A run on the lab that notices a silent link after about two seconds, not after twenty."""
    monkeypatch.setattr("agents.remote.ssh.KEEPALIVE_INTERVAL_S", 0.5)
    monkeypatch.setattr("agents.remote.ssh.CONNECT_TIMEOUT_S", CONNECT_TIMEOUT_S)  # `give_up_soon` changes it
    monkeypatch.setattr("agents.remote.ssh.CLOSE_TIMEOUT_S", 0.5)
    play = Play(lab)
    play.lay_out()
    return play


@dataclass(frozen=True, kw_only=True)
class _Control(Control):
    play: Play

    def patience_now_s(self) -> float:
        return min(self.play.patience_s, super().patience_now_s())


def _address(host: LabHost, data_address: bool) -> HostAddress:
    return HostAddress(
        name=host.name,
        address=host.address,
        port=host.port,
        user=host.user,
        host_key=host.host_key,
        data_address=host.data_address if data_address else "",
    )


def _cookies(pid: int) -> list[str]:
    mark = b"BENCHHUB_JOB="
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
    return [variable.removeprefix(mark).decode() for variable in variables if variable.startswith(mark)]
