"""The way back: end what runs, undo what was changed, and prove by a second snapshot that the host is as before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from agents.base.clock import run_clock_s
from agents.base.command import Command
from agents.base.errors import MISTAKE_HINT, AgentError, CommandError, ConnectError, FenceError, HostError
from agents.base.log_context import bound
from agents.events import (
    JobEnded,
    JobIntended,
    Logged,
    PhaseFinished,
    PhaseName,
    PhaseStarted,
    Restored,
    Role,
    SnapshotTaken,
)
from agents.record import Record
from agents.remote.deadman import DeadMan, Renewal
from agents.remote.jobs import Job
from agents.running import snapshot
from agents.running.control import Control
from agents.running.host_links import HostLinks, raise_first
from agents.running.preparation import boot_id_command
from agents.running.server_names import server_job
from agents.running.tuning import host_steps, tuning_of
from agents.spec import Part, RunSpec

logger = logging.getLogger(__name__)


class Restoring:
    """Brings the hosts of `roles` back, from any record, as often as it takes. `attempt` and `force`: see Tuning."""

    def __init__(
        self,
        spec: RunSpec,
        reach: HostLinks,
        record: Record,
        control: Control,
        roles: tuple[Role, ...],
        *,
        attempt: str = "",
        force: bool = False,
    ) -> None:
        self._spec = spec
        self._reach = reach
        self._record = record
        self._control = control
        self._roles = roles
        self._attempt = attempt
        self._force = force
        self._parts = {part.role: part for part in reversed(spec.parts)}
        self._left: dict[Role, list[str]] = {role: [] for role in reach.roles}
        self._away: set[Role] = set()
        self._emit = control.emit_into(record)

    async def bring_back(self) -> None:
        """Ends in a Restored event whatever happens: proven equal, or what differs. Only FenceError comes out of it."""
        seen = tuple(role for role in self._roles if role in self._record.facts)
        if "sut" in self._record.facts:  # else no host was touched yet
            timers = [self._reach.deadman(role) for role in seen]
            await self._keep_quiet(timers)
            async with Renewal(timers, arm=False):  # an undo may take longer than the timers wait
                await self._do("stop", {self._roles: self._stop})
                parts = [part for role, part in self._parts.items() if role in seen]
                parts.sort(key=lambda part: part.role in self._away)  # nobody else's host waits for one that is away
                if parts:
                    await self._do("restore", {(part.role,): partial(self._restore, part) for part in parts})
                    await self._do("verify", {(part.role,): partial(self._verify, part) for part in parts})
                for role in seen:
                    await self._look_for_others(role)
        for role in reversed(seen):  # the SUT last: its timer and journal may be those of a driver on the same host
            if not self._left[role]:
                await self._clean_up(role)
            elif role not in self._away:
                await self._leave_to_a_person(role)
        differences = {role: tuple(dict.fromkeys(left)) for role, left in self._left.items() if left}
        for role, left in differences.items():
            lines = (f"{self._reach.link(role).host} is not proven to be as before:", *left)
            await self._emit(Logged("runner", lines, "error"))
        await self._emit(Restored(differences, tuple(role for role in self._reach.roles if role in self._away)))

    async def _keep_quiet(self, timers: list[DeadMan]) -> None:
        """No host must put itself back at the same time. One that is away, or has done it, is no problem."""
        for timer in timers:
            with suppress(CommandError, ConnectError, HostError):
                await timer.renew()

    async def _do(self, phase: PhaseName, actions: Mapping[tuple[Role, ...], Callable[[], Awaitable[None]]]) -> None:
        """One phase of the way back; what stops it is written down, and what comes next is tried all the same.

        The roles of an action are those whose hosts cannot be called proven when it failed as a whole.
        """
        with bound(step=phase):
            await self._emit(PhaseStarted(phase, run_clock_s()))
            done = [await self._try(phase, roles, action) for roles, action in actions.items()]
            if all(done):
                await self._emit(PhaseFinished(phase, self._record.phase_s(phase)))

    async def _try(self, phase: PhaseName, roles: tuple[Role, ...], action: Callable[[], Awaitable[None]]) -> bool:
        try:
            await action()
        except FenceError:
            raise
        except AgentError as error:
            for role in roles:
                self._note(role, f"{phase}: {error.message}", error)
        except Exception:
            logger.exception("could not %s, in a way that nobody foresaw", phase)
            for role in roles:
                self._left[role].append(f"{phase}: BenchHub made a mistake. {MISTAKE_HINT}")
        else:
            return True
        return False

    async def _stop(self) -> None:
        """End every job that was ever intended, except undos; what is left counts as not restored.

        A tuning step that has ended may have left a process on purpose, which its undo ends. The servers of a system
        end one after the other, those first that started last.
        """
        servers = [
            {server_job(part.role, number) for number in range(part.server.count)}
            for part in reversed(self._spec.parts_in_order)
        ]
        all_servers = set().union(*servers)
        jobs = {
            name: intended
            for name, intended in self._record.jobs.items()
            if intended.role in self._roles
            and not (name.startswith("undo-") or (name.startswith("step-") and name in self._record.ended_jobs))
        }
        others = {name for name in jobs if name not in all_servers}
        for names in (others | servers[0], *servers[1:]):
            ends = [self._end(name, intended) for name, intended in jobs.items() if name in names]
            raise_first(await asyncio.gather(*ends, return_exceptions=True))
        for part in self._parts.values():
            if part.role in self._roles and part.profilers and part.server.runtime == "jvm":
                await self._forget_attached(part)

    async def _end(self, name: str, intended: JobIntended) -> None:
        role = intended.role
        try:
            job = Job(self._reach.session(role), intended.directory, intended.privileged)
            remaining = await job.kill(cookie=intended.cookie)
            if name not in self._record.ended_jobs and not remaining:
                await self._emit(JobEnded(name, (await job.status()).exit_status))
        except FenceError:
            raise
        except AgentError as error:
            self._note(role, f"whether a process of {name} still runs is not known: {error.message}", error)
        else:
            self._left[role] += [f"process {process} of {name} is still running" for process in remaining]

    async def _forget_attached(self, part: Part) -> None:
        """Remove what a JVM leaves that was spoken to and then killed; one that ends by itself removes it."""
        names = [server_job(part.role, number) for number in range(part.server.count)]
        started = [self._record.started_jobs[name].pid for name in names if name in self._record.started_jobs]
        files = [f"/tmp/.{kind}_pid{pid}" for pid in started if pid for kind in ("java", "attach")]  # noqa: S108
        if files and part.role not in self._away:
            removed = await self._reach.session(part.role).mutate(Command(("rm", "-f", "--", *files)))
            removed.check(f"Removing what profilers left on {part.host.name}")

    async def _restore(self, part: Part) -> None:
        host, role = self._reach.session(part.role), part.role
        tuning = tuning_of(self._spec, part, host, self._record, self._emit, attempt=self._attempt, force=self._force)
        if problems := await tuning.revert(host_steps(part)):
            boot_id = (await host.run(boot_id_command())).text.strip()
            if boot_id and boot_id != self._record.facts[role].boot_id:
                self._left[role].append(f"{host.host} was restarted during the run")
            self._left[role] += problems
        for name, intended in self._record.jobs.items():
            if name.startswith(("step-", "undo-")) and intended.role == role:
                await self._end(name, intended)

    async def _verify(self, part: Part) -> None:
        before = self._record.snapshots.get((part.role, "before"))
        if before is None:
            return
        after = await snapshot.read(self._reach.session(part.role))
        await self._emit(SnapshotTaken("after", after, part.role))
        self._left[part.role] += snapshot.differences(before.values, after)

    async def _look_for_others(self, role: Role) -> None:
        """No host is called as before on which another run has left something."""
        if role in self._away:
            return
        try:
            self._left[role] += await self._reach.leftovers(role, force=self._force).clear()
        except FenceError:
            raise
        except AgentError as error:
            self._note(role, f"whether another run has left something is not known: {error.message}", error)

    async def _clean_up(self, role: Role) -> None:
        """End the timer, and remove the run's directory: what it held is in the record, so that may fail.

        Of a directory that another part of the run still needs, both stay: the host may be the SUT, too, which is not
        as before and has its restore.sh there.
        """
        try:
            session, directory, timer = (
                self._reach.session(role),
                self._reach.directory(role),
                self._reach.deadman(role),
            )
            try:
                others = await timer.shared_with()
                if not others & timer.servers:
                    await timer.disarm()
            except ConnectError as error:  # it would go off later, perhaps in the middle of another run
                self._note(role, f"the dead-man timer could not be ended: {error.message}", error)
                return
            if others:
                await timer.give_up_share(settle=role in timer.servers and not others & timer.servers)
            else:
                remove = Command(("rm", "-rf", "--", directory), privileged=self._has_files_of_root(role))
                (await session.mutate(remove)).check(f"Removing {directory}")
            await timer.leave()
        except FenceError:
            raise
        except AgentError as error:
            text = f"The run's directory on {self._reach.link(role).host} stays: {error.message}"
            await self._emit(Logged("runner", (text,)))

    def _has_files_of_root(self, role: Role) -> bool:
        """Whether root wrote into the directory, for this part of the run or for one that may share it."""
        here = self._record.facts[role]
        beside = {
            one.role
            for one in self._record.facts.values()
            if (one.directory, one.boot_id) == (here.directory, here.boot_id)
        }
        return any(job.privileged for job in self._record.jobs.values() if job.role in beside)

    async def _leave_to_a_person(self, role: Role) -> None:
        """End the timer: a worker has been here, and restore.sh would overwrite what somebody else has changed."""
        timer = self._reach.deadman(role)
        try:
            others = await timer.shared_with() & timer.servers if timer.servers - {role} else frozenset()
            # Else the timer is that of a server, which may be away.
            if not others or (role in timer.servers and not others & self._away):
                await timer.disarm(left=bool(self._record.intended))
        except FenceError:
            raise
        except AgentError as error:
            logger.warning("the dead-man timer of %s was not ended: %s", self._reach.link(role).host, error)

    def _note(self, role: Role, problem: str, error: AgentError) -> None:
        self._left[role].append(problem)
        if isinstance(error, ConnectError):
            self._away.add(role)
