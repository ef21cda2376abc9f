"""BenchHub cannot tell the simulated hosts of `bench.fleet` from others, and its judge sees what went wrong."""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agents.base.installation import Installation
from agents.events import AnyEvent, Failed, LoadReported, LoadStarted, Restored
from agents.record import Record
from agents.remote.address import Address, new_key_pair
from agents.remote.framing import command_text, for_any_shell, stream_text
from agents.remote.ssh import SshSession, connect
from agents.runner import Runner
from agents.running.control import Control
from agents.spec import HostAddress, RunSpec
from bench.fleet.commands import PROGRAM
from bench.fleet.judged import Ended, Measured
from bench.fleet.priority import stand_back
from bench.fleet.relay import StatementCounter, Way
from bench.fleet.sent_commands import read_back
from bench.fleet.site import Site
from bench.fleet.site_plan import SitePlan
from bench.sshd import free_port
from tests.agents.specs import make_spec

MARK = "0123456789abcdef"
ADDRESSES = ("127.61.0.2", "127.61.0.3")
INSTALLATION = Installation("fleet", "a test")


@pytest.mark.parametrize(
    "words",
    [
        ("true",),
        ("sh", "-c", "echo \"$1\" 'two words'\n[ ! -e \\x ] || exit 3\n", "sh", "it's", "", "ä ü", "a\tb"),
        ("rm", "-rf", "--", "/srv/a b"),
    ],
)
def test_what_goes_to_a_host_is_read_back_word_by_word(words: tuple[str, ...]) -> None:
    command = read_back(for_any_shell(command_text(words, MARK, limit_s=31, privileged=False)))
    stream = read_back(for_any_shell(stream_text(words, MARK, privileged=False)))

    assert (command.argv, command.mark, command.runs_on) == (words, MARK, False)
    assert (stream.argv, stream.mark, stream.runs_on) == (words, MARK, True)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_statements_are_counted_however_their_bytes_arrive(size: int) -> None:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + (len(body) + 4).to_bytes(4) + body

    asked = message(b"", b"\x04\xd2\x16\x2f") + message(b"", b"\0\3\0\0user\0ada\0\0")
    asked += message(b"Q", b"SELECT 1\0") + message(b"P", b"QE") + message(b"E", b"\0\0\0\0\0") + message(b"S", b"")
    counter = StatementCounter()

    assert sum(counter.feed(asked[at : at + size]) for at in range(0, len(asked), size)) == 2


async def test_nothing_passes_a_way_that_is_cut_until_it_is_mended() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def says(port: int) -> bytes:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            return await reader.read()
        return b""

    centre = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = free_port("127.0.0.1")
    way = Way(SitePlan("oslo", (), 0, "", web_port=port, web_target=centre.sockets[0].getsockname()[1]))
    async with centre:
        await way.open()
        assert await says(port) == b"hello\n"
        way.do("cut")
        assert await says(port) == b""
        way.do("mend")
        assert await says(port) == b"hello\n"


def test_a_process_that_stands_back_does_so_with_its_session() -> None:
    sleeps = [subprocess.Popen(["sleep", "60"], start_new_session=True) for _ in range(3)]
    try:
        for one in sleeps:
            stand_back(one.pid, 7)
        assert [os.getpriority(os.PRIO_PROCESS, one.pid) for one in sleeps] == [7, 7, 7]
        groups = [group for one in sleeps if (group := Path(f"/proc/{one.pid}/autogroup")).exists()]
        assert {group.read_text().split()[-1] for group in groups} <= {"7"}
    finally:
        for one in sleeps:
            one.kill()
            one.wait()


def told(**jobs: int) -> dict[str, object]:
    starts = {f"oslo-000 /runs/r1/jobs/{name} cookie": count for name, count in jobs.items()}
    return {"starts": starts, "unknown": {}, "fired": 0, "living_jobs": 0, "files_left": 0}


GOOD = Measured(
    2, 1, 1,
    ended=[Ended(1, "finished", "succeeded", "verified", 2, "")],
    told=[told(server=1)],
    claims_ms=[5.0],
    quiet_ms={"Runs": [10.0]},
    live_ms={"Runs": [12.0]},
)  # fmt: skip


@pytest.mark.parametrize(
    "found, problem",
    [
        (GOOD, ""),
        (replace(GOOD, ended=[Ended(1, "measuring", "", "", 1, "")]), "run #1 is measuring"),
        (replace(GOOD, ended=[Ended(1, "finished", "failed", "verified", 1, "cut")]), "run #1 is finished failed"),
        (replace(GOOD, told=[told(server=2)]), "/runs/r1/jobs/server was started 2 times"),
        (replace(GOOD, told=[{**told(), "unknown": {"ls": 3}}]), "not simulated, 3 times: ls"),
        (replace(GOOD, told=[{**told(), "living_jobs": 1}]), "1 jobs were left"),
        (replace(GOOD, hosts_not_free=4), "4 hosts are not free"),
        (replace(GOOD, claims_ms=[5.0, 2000.0]), "the 99th percentile of claims"),
        (replace(GOOD, live_ms={"Runs": [16.0]}), "the page Runs takes 1.60 times"),
    ],
)
def test_a_measurement_names_what_it_has_missed(found: Measured, problem: str) -> None:
    missed = found.missed()

    assert [text for text in missed if problem in text] == missed
    assert bool(missed) is bool(problem)


class Fleet:
    """A site of two hosts in this event loop, and what works on them."""

    def __init__(self, folder: Path) -> None:
        private, public = new_key_pair("host")
        self.login, _ = new_key_pair("login")
        (folder / "host_key").touch(mode=0o600)
        (folder / "host_key").write_text(private)
        with socket.socket() as probe:
            probe.bind((ADDRESSES[0], 0))
            self.port = int(probe.getsockname()[1])
        self.site = Site(SitePlan("oslo", ADDRESSES, self.port, str(folder / "host_key")))
        self.key = " ".join(public.split()[:2])
        self.events: list[AnyEvent] = []
        self.under_load = asyncio.Event()

    def spec(self, load_s: int) -> RunSpec:
        sut, driver = (
            HostAddress(name=name, address=at, port=self.port, user=getpass.getuser(), host_key=self.key)
            for name, at in zip(("sut", "driver"), ADDRESSES, strict=True)
        )
        return make_spec(
            server={"argv": [PROGRAM], "files": {"index.html": "hello\n"}, "ready": {"body_contains": "hello"}},
            workload={
                "driver": {"kind": "wrk", "connections": 2, "threads": 1, "binary": "/opt/fleet/wrk"},
                "phases": [{"name": "load", "kind": "measure", "duration_s": load_s}],
            },
            sut=sut,
            drivers=(driver,),
        )

    async def run(self, load_s: int, fence: int) -> None:
        """Go on with the run from the events so far."""

        async def emit(event: AnyEvent) -> None:
            self.events.append(event)
            if isinstance(event, LoadStarted):
                self.under_load.set()

        async def connected(at: HostAddress) -> SshSession:
            return await connect(Address(at.name, at.address, at.port, at.user, at.host_key), self.login)

        control = Control(connected, emit, lambda: False, fence, installation=INSTALLATION)
        await Runner("r1-65f0", self.spec(load_s), Record.fold(self.events), control).run()

    def assert_well(self) -> None:
        assert [event for event in self.events if isinstance(event, Failed)] == []
        assert [event.differences for event in self.events if isinstance(event, Restored)] == [{}]
        assert sum(isinstance(event, LoadReported) for event in self.events) == 1
        seen = self.site.told()
        assert (seen["unknown"], seen["fired"], seen["living_jobs"], seen["files_left"]) == ({}, 0, 0, 0)
        names = sorted(job.split()[1].rpartition("/")[2] for job in seen["starts"])
        assert (names, set(seen["starts"].values())) == (["deadman", "deadman", "load-0", "server"], {1})


def test_a_run_goes_its_way_on_simulated_hosts(tmp_path: Path) -> None:
    async def play() -> None:
        fleet = Fleet(tmp_path)
        async with fleet.site.open():
            await fleet.run(1, fence=1)
        fleet.assert_well()

    asyncio.run(play())


def test_whoever_goes_on_with_a_run_on_simulated_hosts_starts_nothing_twice_and_the_older_holder_is_refused(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        fleet = Fleet(tmp_path)
        async with fleet.site.open():
            first = asyncio.create_task(fleet.run(3, fence=1))
            await fleet.under_load.wait()
            first.cancel()
            await asyncio.wait({first})
            fleet.site.do("cut")
            fleet.site.do("mend")
            await fleet.run(3, fence=2)
            fleet.assert_well()
            assert {host.fence for host in fleet.site.hosts.values()} == {2}

    asyncio.run(play())
