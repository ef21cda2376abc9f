"""The hosts of one site as SSH servers, in a process of their own: `python -m bench.fleet.site PLAN`.

PLAN is a JSON file. Questions come on standard input (bench/fleet/questions.py).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncssh

from bench.fleet import replies
from bench.fleet.commands import perform
from bench.fleet.questions import answer_questions
from bench.fleet.readings import Readings
from bench.fleet.sent_commands import Sent, read_back
from bench.fleet.simulated import SimulatedHost
from bench.fleet.site_plan import SitePlan, read_plan

UNKNOWN_STATUS = 127
_LOST = (asyncssh.Error, asyncssh.SignalReceived, asyncssh.BreakReceived, OSError)


class _Server(asyncssh.SSHServer):
    """Lets everybody in who has a key: the hosts are simulated, and on the loopback network."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        if self._site.is_cut:
            conn.abort()
            return
        self._site.connections.add(conn)
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "_connection"):
            self._site.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return True


class Site:
    """The hosts of one site."""

    def __init__(self, plan: SitePlan) -> None:
        self.plan = plan
        self.is_cut = False
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.hosts: dict[str, SimulatedHost] = {}
        for at, address in enumerate(plan.addresses):
            self.hosts[address] = SimulatedHost(plan.host_name(at), address, str(replies.home()), self.hosts)
        self.readings = Readings()
        self.commands = 0
        self.unknown: dict[str, int] = {}

    async def serve(self) -> None:
        """Open everything; answer questions until standard input ends."""
        async with self.open():
            await answer_questions(self.do)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Hosts take connections."""
        following = asyncio.create_task(self.readings.follow())
        listening = await asyncssh.listen(
            list(self.plan.addresses),
            self.plan.ssh_port,
            server_factory=lambda: _Server(self),
            server_host_keys=[self.plan.host_key_file],
            process_factory=self._answer,
            encoding=None,
            login_timeout=60,
            backlog=1000,
        )
        try:
            yield
        finally:
            listening.close()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def do(self, what: str) -> dict[str, Any]:
        match what:
            case "cut":
                self.is_cut = True
                for connection in list(self.connections):
                    connection.abort()
            case "mend":
                self.is_cut = False
        return self.told()

    def told(self) -> dict[str, Any]:
        """What the site has seen so far."""
        hosts = self.hosts.values()
        return {
            "commands": self.commands,
            "unknown": self.unknown,
            "connections": len(self.connections),
            "starts": {f"{host.name} {job}": count for host in hosts for job, count in host.starts.items()},
            "fired": sum(host.fired for host in hosts),
            "living_jobs": sum(job.lives for host in hosts for job in host.jobs.values()),
            "files_left": sum(name.startswith(f"{host.home}/.benchhub/runs/") for host in hosts for name in host.files),
        }

    async def _answer(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        with suppress(*_LOST):
            host = self.hosts[process.get_extra_info("sockname")[0]]
            sent = read_back(process.command or "")
            self.commands += 1
            process.stdout.write(sent.begins())
            process.stderr.write(sent.begins())
            if sent.runs_on:
                await self._stream(process, sent)
                return
            stdin = await process.stdin.read()
            answer = perform(host, sent.argv, stdin)
            if answer is None:
                text = " ".join(sent.argv)[:300]
                self.unknown[text] = self.unknown.get(text, 0) + 1
                process.stderr.write(b"this command is not simulated\n" + sent.ends(UNKNOWN_STATUS))
                process.stdout.write(sent.ends(UNKNOWN_STATUS))
                process.exit(UNKNOWN_STATUS)
                return
            process.stdout.write(answer.out + sent.ends(answer.status))
            process.stderr.write(answer.err + sent.ends(answer.status))
            process.exit(answer.status)

    async def _stream(self, process: asyncssh.SSHServerProcess[bytes], sent: Sent) -> None:
        """The monitors: a frame at once, and one at each interval, until the channel closes its standard input."""
        interval_s, mark = float(sent.argv[4]), sent.argv[5]
        closed = asyncio.create_task(process.stdin.read())
        while not closed.done():
            if frame := self.readings.for_mark(mark):
                process.stdout.write(frame)
                await process.stdout.drain()
            await asyncio.wait({closed}, timeout=interval_s)
        with suppress(*_LOST):
            closed.result()
        process.exit(0)


if __name__ == "__main__":
    asyncio.run(Site(read_plan(Path(sys.argv[1]))).serve())
