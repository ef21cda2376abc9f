"""Each kind of host either carries a whole run, or the test of its connection says what it lacks and what mends it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agents import events as e
from agents import facts
from agents.base.command import Command, script
from agents.base.errors import AgentError
from agents.base.session import Session
from agents.record import Record
from agents.remote.address import Address
from agents.remote.jobs import Job
from agents.remote.ssh import SshSession, connect, scan_host_keys
from agents.runner import Runner
from agents.running.control import Control
from agents.running.needs import look
from agents.spec import HostAddress, RunSpec
from lab.lab import Lab, LabHost
from tests import needs
from tests.agents.specs import make_spec
from tests.hosts.kinds import KINDS, HostKind
from tests.lab.conftest import running_lab
from tests.sshd import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.lab, pytest.mark.slow]

CARRIES_RUNS = [kind for kind in KINDS if not kind.refused]
KEY, PORT = "r9-kind", 8080
SERVER = "command -v python3 >/dev/null && exec python3 -u -m http.server {port}; exec busybox httpd -f -p {port}"
BENCH = """
for ask in 'curl -sS' 'wget -q -O -'; do
  command -v "${ask%% *}" >/dev/null || continue
  [ "$($ask "$1")" = hello ] && echo 'rate: 1.0' && echo 'p99: 4.0' && exit 0
done
exit 1
"""
STEP: dict[str, Any] = {
    "kind": "command",
    "run": "printf 'tuned\\n' >\"$HOME/app.conf\"",
    "undo": "printf 'as it was\\n' >\"$HOME/app.conf\"",
    "observe": 'cat "$HOME/app.conf"',
    "expect": "tuned\n",
}


@dataclass
class Pair:
    """Two hosts of one kind, and a run on them."""

    kind: HostKind
    hosts: tuple[LabHost, LabHost]
    keys: dict[str, str]

    def login(self, host: LabHost) -> Address:
        return Address(host.name, host.address, self.kind.port, self.kind.user, self.keys[host.name])

    async def session(self, host: LabHost) -> SshSession:
        return await connect(self.login(host), host.private_key)

    async def complaint(self, host: LabHost) -> tuple[str, str] | None:
        """What the test of a connection shows of this host that keeps runs from it."""
        try:
            session = await self.session(host)
            try:
                found = await look(session, "all" if host.name == "sut" else "driver", self.kind.user)
                assert (await facts.collect(session)).profile()
            finally:
                await session.close()
        except AgentError as error:
            return error.message, error.hint
        return found.complaint(host.name)

    async def run(self) -> Record:
        events: list[e.AnyEvent] = []

        async def emit(event: e.AnyEvent) -> None:
            events.append(event)

        async def opened(address: HostAddress) -> Session:
            return await self.session(next(host for host in self.hosts if host.name == address.name))

        control = Control(opened, emit, lambda: False, 1, 600.0, 600)
        await Runner(KEY, self.spec(), Record(), control).run()
        return Record.fold(events)

    def spec(self) -> RunSpec:
        sut, driver = (
            HostAddress(
                name=host.name,
                address=host.address,
                port=self.kind.port,
                user=self.kind.user,
                host_key=self.keys[host.name],
                data_address=host.data_address,
            )
            for host in self.hosts
        )
        return make_spec(
            steps=(STEP,),
            server={
                "argv": ["sh", "-c", SERVER.format(port=PORT)],
                "port": PORT,
                "files": {"index.html": "hello\n"},
                "ready": {"body_contains": "hello", "timeout_s": 60},
            },
            workload={
                "driver": {
                    "kind": "command",
                    "argv": ["sh", "bench.sh", "{url}"],
                    "scripts": {"bench.sh": BENCH},
                    "fixed_work": True,
                    "figures": {
                        "throughput_rps": {"pattern": "rate: (.+)"},
                        "latency_p99_ms": {"pattern": "p99: (.+)"},
                    },
                },
                "phases": [{"name": "measure", "kind": "measure", "duration_s": 1}],
            },
            sut=sut,
            drivers=(driver,),
        )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("kinds"), "sut", "driver") as lab:
        yield lab


@pytest_asyncio.fixture(params=KINDS, ids=lambda kind: kind.name)
async def pair(request: pytest.FixtureRequest, lab: Lab) -> AsyncIterator[Pair]:
    kind: HostKind = request.param
    needs.require_program(*kind.programs)
    hosts = lab.host("sut"), lab.host("driver")
    for host in hosts:
        kind.make(host)
    try:
        await eventually(lambda: all(_answers(host.address, kind.port) for host in hosts))
        keys = {host.name: (await scan_host_keys(host.address, kind.port))[0].line for host in hosts}
        yield Pair(kind, hosts, keys)
    finally:
        for host in hosts:
            kind.unmake(host)


def _answers(address: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1) as probe:
        return probe.recv(4) == b"SSH-"
    return False


async def test_a_kind_of_host_carries_a_run_or_is_refused_in_words_that_mend_it(pair: Pair) -> None:
    complaint = await pair.complaint(pair.hosts[1])
    if pair.kind.refused:
        assert complaint is not None
        assert pair.kind.refused in complaint[0]
        assert pair.kind.mended_by in complaint[1]
        return

    assert complaint is None
    session = await pair.session(pair.hosts[0])
    await session.run(script('printf "as it was\\n" >"$HOME/app.conf"'))
    record = await pair.run()
    assert record.failed is None, record.failed
    assert record.restored == e.Restored({})
    assert (await session.run(script('cat "$HOME/app.conf"'))).stdout == b"as it was\n"
    await session.close()


@pytest.mark.parametrize("pair", CARRIES_RUNS, ids=lambda kind: kind.name, indirect=True)
async def test_a_kind_of_host_moves_bytes_and_ends_what_it_was_told_to_end(pair: Pair) -> None:
    host = pair.hosts[0]
    session = await pair.session(host)
    home = (await session.run(script("cd && pwd -P"))).text.strip()
    data = bytes(range(256)) * 400 + b"\n!'\\"
    words = ("!x", "a'b", "back\\slash \\n", "two\nlines", "", "é$(id)`id`*")

    assert (await session.run(Command(("printf", "%s|", *words)))).text == "|".join(words) + "|"
    assert (await session.run(script("echo out; echo err >&2; exit 3"))).exit_status == 3
    assert (await session.run(script("echo out; echo err >&2"))).stderr == b"err\n"
    await session.put(f"{home}/bytes", data)
    assert await session.get(f"{home}/bytes", max_bytes=len(data)) == data

    job = Job(session, f"{home}/job/one")
    await job.start(script("echo begun; exec sleep 600"), cookie="kindofhost0123456789")
    assert await job.kill(grace_s=1) == ()
    assert (await job.read("out", 0)) == b"begun\n"

    stream = await session.start(script("echo told; while :; do sleep 1; done"))
    assert await anext(aiter(stream)) == b"told\n"
    await stream.close()
    await eventually(lambda: not any("while :; do sleep 1" in " ".join(p.argv) for p in host.processes()))
    await session.run(script('rm -rf "$HOME/job" "$HOME/bytes"'))
    await session.close()


async def test_hosts_with_512_cpus_carry_a_run(tmp_path: Path) -> None:
    with running_lab(tmp_path, "sut", "driver", cpus=512) as lab:
        hosts = lab.host("sut"), lab.host("driver")
        kind = HostKind("OpenSSH, 512 CPUs", lambda host: None, user="root")
        pair = Pair(kind, hosts, {host.name: host.host_key for host in hosts})
        assert await pair.complaint(hosts[1]) is None
        session = await pair.session(hosts[0])
        await session.run(script('printf "as it was\\n" >"$HOME/app.conf"'))
        record = await pair.run()
        await session.close()
        assert record.failed is None, record.failed
        assert record.restored == e.Restored({})
        assert record.facts["sut"].profile["cpu.online"] == "0-511"
