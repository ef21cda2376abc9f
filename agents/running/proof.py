"""Proves on one host what a run relies on there: jobs that outlive us, an undo that works, a timer that goes off.

For hosts that no test machine can stand for: systemd as PID 1, another kernel, a real restart. It changes only a sysctl
by one, and files in a directory of its own, and puts everything back.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import AgentError, HostError
from agents.base.installation import UNNAMED, Installation
from agents.base.session import Session
from agents.events import AnyEvent
from agents.record import Record
from agents.remote.deadman import DeadMan
from agents.remote.fencing import FencedSession, Hold, fence_directory
from agents.remote.jobs import Job
from agents.remote.link import Link
from agents.running import snapshot
from agents.running.preparation import boot_id_command
from agents.running.tuning import Tuning
from agents.servers.command import CommandServer
from agents.steps.base.step import HostStep
from agents.steps.file import FileStep
from agents.steps.sysctl import SysctlStep

DEADMAN_S = 5
FIRES_WITHIN_S = 600
RESTART_WITHIN_S = 900
SYSCTL = "net.ipv4.tcp_fin_timeout"

_DIRECTORY = """
umask 077
mkdir -p -- "$HOME/.benchhub/runs/$1/jobs" && cd -- "$HOME/.benchhub/runs/$1" && pwd -P
"""
# Ignores TERM, leaves its session, has children, and writes until it is killed.
_STUBBORN = "trap '' TERM; (setsid sh -c \"trap '' TERM; sleep 600\" &) ; sleep 600 & while :; do date; sleep 1; done"


@dataclass(frozen=True)
class Proof:
    """One promise and what was seen of it. `passed` None = it could not be tried here, for the reason in `detail`."""

    promise: str
    passed: bool | None
    detail: str


class HostProof:
    """The proofs of one host. `connect` opens a new session; `fence` must be newer than any that the host has seen."""

    def __init__(
        self, name: str, connect: Callable[[], Awaitable[Session]], fence: int, installation: Installation = UNNAMED
    ) -> None:
        self._patience_s = 30.0
        self._link = Link(name, connect, patience_s=lambda: self._patience_s)
        self._fence = fence
        self._installation = installation
        self._directory = ""

    async def prove(self, tell: Callable[[Proof], None], *, restart: bool) -> bool:
        """One proof after the other, each told as it comes; whether none failed. `restart` also restarts the host."""
        tries: dict[str, Callable[[], Awaitable[str]]] = {
            "a job goes on when the connection is lost": self._job_outlives_us,
            "a stubborn job is ended whole": self._job_is_ended,
            "tuning is undone, proven by a second snapshot": self._undo,
            "the host puts itself back when no worker comes": self._deadman,
            "a restart in the middle of a run leaves nothing": self._restart if restart else _not_asked_for,
        }
        passed = []
        try:
            await self._prepare()
            for promise, seen in tries.items():
                proof = await _tried(promise, seen)
                passed.append(proof.passed is not False)
                tell(proof)
        finally:
            if self._directory:
                await self._session().mutate(Command(("rm", "-rf", "--", self._directory)))
            await self._link.close()
        return all(passed)

    async def _prepare(self) -> None:
        found = await self._link.run(script(_DIRECTORY, f"proof-{secrets.token_hex(4)}"))
        self._directory = found.check("Making a directory").text.strip()

    async def _job_outlives_us(self) -> str:
        job = self._job("outlives")
        count = Command(("sh", "-c", "for n in 1 2 3 4 5 6; do echo $n; sleep 0.5; done"))
        await job.start(count, cookie=secrets.token_hex(16))
        await self._link.close()
        status = await job.follow(_ignored, interval_s=0.3, deadline_s=FIRES_WITHIN_S)
        _insist(status.exit_status == 0, f"it ended as {status}")
        _insist(await job.read("out", 0) == b"1\n2\n3\n4\n5\n6\n", "its output is not whole")
        init = (await self._link.run(Command(("cat", "/proc/1/comm")))).text.strip()
        return f"its whole output was read over another connection; PID 1 is {init}"

    async def _job_is_ended(self) -> str:
        job, cookie = self._job("stubborn"), secrets.token_hex(16)
        await job.start(Command(("sh", "-c", _STUBBORN)), cookie=cookie)
        left = await job.kill(1, cookie=cookie)
        _insist(left == (), f"still there: {', '.join(left)}")
        return "nothing of it is left"

    async def _undo(self) -> str:
        before = await snapshot.read(self._session())
        tuning, steps = await self._tuned("undo")
        changed = await snapshot.read(self._session())
        problems = await tuning.revert(steps)
        _insist(problems == (), "; ".join(problems))
        left = snapshot.differences(before, await snapshot.read(self._session()))
        _insist(left == (), "; ".join(left))
        return f"{len(before)} settings compared, {len(snapshot.differences(before, changed))} had been changed"

    async def _deadman(self) -> str:
        before = await snapshot.read(self._session())
        tuning, steps = await self._tuned("deadman")
        session = self._session()
        timer = DeadMan(session, f"{self._directory}/deadman", session.hold, DEADMAN_S)
        await timer.arm()
        fired = Command(("test", "-e", f"{self._directory}/deadman/fired"))

        async def has_fired() -> bool:
            return (await self._link.run(fired)).ok

        await _eventually(has_fired, FIRES_WITHIN_S, "it has not gone off")
        left = snapshot.differences(before, await snapshot.read(self._session()))
        _insist(left == (), "; ".join(left))
        problems = await tuning.revert(steps)
        _insist(problems == (), "; ".join(problems))
        try:
            await timer.renew()
        except HostError:
            return f"it went off after {DEADMAN_S} s, and a worker that comes back is told so"
        raise _Unproven("a worker that comes back was not told that the timer had gone off")

    async def _restart(self) -> str:
        before = await snapshot.read(self._session())
        boot_id = (await self._link.run(boot_id_command())).text
        tuning, steps = await self._tuned("restart")
        job = self._job("restart-server")
        await job.start(Command(("sleep", "3600")), cookie=secrets.token_hex(16))
        asked = script("(sleep 1; systemctl reboot || reboot) </dev/null >/dev/null 2>&1 &", privileged=True)
        (await self._link.run(asked)).check("Asking for the restart")
        self._patience_s = RESTART_WITHIN_S

        async def restarted() -> bool:
            return (await self._link.run(boot_id_command())).text != boot_id

        await _eventually(restarted, RESTART_WITHIN_S, "it has not come back with a new boot id")
        _insist((await job.status()).state == "dead", "the job of before the restart does not count as dead")
        problems = await tuning.revert(steps)
        left = snapshot.differences(before, await snapshot.read(self._session()))
        _insist(not problems and not left, "; ".join((*problems, *left)))
        return "its job is known to be dead, and every setting is as before"

    async def _tuned(self, name: str) -> tuple[Tuning, dict[int, HostStep]]:
        """A file of the instance and one sysctl, changed under a journal of their own."""
        now = await self._link.run(Command(("cat", "/proc/sys/net/ipv4/tcp_fin_timeout")))
        value = str(int(now.check(f"Reading {SYSCTL}").text) + 1)
        steps: dict[int, HostStep] = {
            1: FileStep(path="app.conf", content="tuned\n"),
            2: SysctlStep(values={SYSCTL: value}),
        }
        record, directory = Record(), f"{self._directory}/{name}"

        async def emit(event: AnyEvent) -> None:
            record.add(event)

        made = await self._session().mutate(Command(("mkdir", "-p", "--", directory)))
        made.check("Making a directory")
        tuning = Tuning(self._session(), directory, record, emit)
        await tuning.create_instances(CommandServer(argv=("true",), files={"app.conf": "as it was\n"}), "")
        for index, step in steps.items():
            await tuning.apply(index, step)
        return tuning, steps

    def _session(self) -> FencedSession:
        return FencedSession(self._link, Hold(self._fence, fence_directory(self._directory), self._installation))

    def _job(self, name: str) -> Job:
        return Job(self._session(), f"{self._directory}/jobs/{name}")


class _Unproven(Exception):
    """What was seen instead of what was promised."""


async def _tried(promise: str, see: Callable[[], Awaitable[str]]) -> Proof:
    started = time.monotonic()
    try:
        detail = await see()
    except _Untried as reason:
        return Proof(promise, None, str(reason))
    except (AgentError, _Unproven) as error:
        return Proof(promise, False, str(error))
    return Proof(promise, True, f"{detail} ({time.monotonic() - started:.1f} s)")


class _Untried(Exception):
    """Why a proof was not tried."""


async def _ignored(*_output: object) -> None:
    """The output is read as a whole afterwards."""


async def _eventually(seen: Callable[[], Awaitable[bool]], within_s: float, otherwise: str) -> None:
    end_s = time.monotonic() + within_s
    while not await seen():
        _insist(time.monotonic() < end_s, f"{otherwise} within {within_s:g} s")
        await asyncio.sleep(0.5)


async def _not_asked_for() -> str:
    raise _Untried("not tried: the host is only restarted with --restart")


def _insist(seen: bool, otherwise: str) -> None:
    if not seen:
        raise _Unproven(otherwise)
