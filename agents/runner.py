"""Walks a run through its phases. Resumable from its record at any line, and it always restores the host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Literal

from agents.base.clock import run_clock_s
from agents.base.command import Command
from agents.base.errors import (
    MISTAKE_HINT,
    AgentError,
    CommandError,
    ConnectError,
    FenceError,
    HostError,
    HostInUse,
    MistakeError,
)
from agents.base.log_context import bound
from agents.events import (
    AnyEvent,
    FactsCollected,
    Failed,
    Logged,
    PhaseFinished,
    PhaseName,
    PhaseStarted,
    Role,
    SnapshotTaken,
)
from agents.facts.access import Access
from agents.monitors import MONITORS
from agents.record import Record
from agents.remote.claiming import Taken
from agents.remote.deadman import Renewal
from agents.remote.fencing import FencedSession
from agents.running import snapshot
from agents.running.canaries import CANARIES
from agents.running.canary_checks import check_hosts
from agents.running.control import Cancelled, Control
from agents.running.host_links import HostLinks, raise_first
from agents.running.loading import Loading
from agents.running.monitoring import Monitoring
from agents.running.own_address import own_address
from agents.running.preparation import check_cpus, check_drivers, identify, look_at_host, server_cpus
from agents.running.profiling import Profiling
from agents.running.recording import Recording
from agents.running.restoring import Restoring
from agents.running.system import System
from agents.running.tool_job import LoadSite
from agents.running.tuning import host_steps, tuning_of
from agents.spec import Part, RunSpec

logger = logging.getLogger(__name__)


class Runner:
    """One run. `run` may be called on any record, from empty to almost finished, by any worker that holds the fence."""

    def __init__(self, run_key: str, spec: RunSpec, record: Record, control: Control) -> None:
        self._key = run_key
        self._spec = spec
        self._record = record
        self._control = control
        self._emit = control.emit_into(record)
        self._phase: PhaseName = "connect"
        self._reach = HostLinks(run_key, spec, record, control, lambda message: self._say(message, level="warning"))
        self._renewal: Renewal | None = None
        self._system = System(spec, self._reach, record, control, self._check)
        self._recording = Recording(spec, self._reach, record, control, self._check)
        self._profiling = Profiling(spec, self._reach, record, control, self._check, self._system)

    async def run(self) -> None:
        """Forward to the end of load, then back: stop, restore, verify. A failure is an event, never an exception.

        Only FenceError (someone newer holds the run) and cancellation of the task leave without restoring: then
        another worker goes on from the record. HostInUse leaves, too, when nothing has been done on any host.
        """
        try:
            if self._record.failed is None and "collect" not in self._record.finished_phases:
                await self._forward_or_fail()
            if self._record.restored is None:
                await self._restoring().bring_back()
        finally:
            await self._reach.close()

    async def restore_again(self, *, roles: tuple[Role, ...] | None = None, force: bool = False) -> None:
        """The way back once more on these hosts (None = all) that were not proven as before.

        `force`: foreign changes, too.
        """
        try:
            attempt = f"-again-{self._control.fence}"
            await self._restoring(roles, attempt=attempt, force=force).bring_back()
        finally:
            await self._reach.close()

    def _restoring(self, roles: tuple[Role, ...] | None = None, *, attempt: str = "", force: bool = False) -> Restoring:
        roles = self._reach.roles if roles is None else roles
        return Restoring(self._spec, self._reach, self._record, self._control, roles, attempt=attempt, force=force)

    async def _forward_or_fail(self) -> None:
        try:
            await self._forward()
        except FenceError:
            raise
        except AgentError as error:
            if isinstance(error, HostInUse) and not (self._record.facts or self._control.cancelled()):
                raise
            await self._fail(error)
            if not isinstance(error, ConnectError):  # a host that is out of reach gives nothing
                await self._recording.salvage()
                await self._system.salvage()
        except Exception:
            logger.exception("run %s failed in phase %s in a way that nobody foresaw", self._key, self._phase)
            await self._fail(MistakeError(f"BenchHub made a mistake in the phase {self._phase}.", hint=MISTAKE_HINT))

    async def _fail(self, error: AgentError) -> None:
        if self._control.cancelled():
            error = Cancelled()  # whatever went wrong after that, went wrong for this
        cancelled = isinstance(error, Cancelled)
        await self._emit(Failed(self._phase, error.message, error.hint, cancelled, error.cause))
        await self._say(error.message, level="info" if cancelled else "error")

    async def _insist_that_hosts_know_it(self) -> None:
        """HostError when a run under way has no directory any more on a host: it came to its end there.

        Only a database that is older than the host (a restored backup) tells of such a run as if it still went on.
        """
        for facts in self._record.facts.values():
            session = self._reach.link(facts.role)
            if not (await session.run(Command(("test", "-d", facts.directory)))).ok:
                await self._clear_leftovers()  # of runs that the database does not know: they came after this one
                raise HostError(
                    f"{session.host} does not know this run any more: it has come to its end there since, or somebody "
                    "has removed it.",
                    hint="The database is older than that, as after the restore of a backup. Launch the run again.",
                )

    async def _forward(self) -> None:
        await self._insist_that_hosts_know_it()
        await self._do("connect", self._reach.open)
        await self._do("facts", self._look)
        await self._check_hosts()
        await self._do("snapshot", self._snapshot)
        async with Renewal([self._reach.deadman(role) for role in self._reach.roles]) as self._renewal:
            await self._do("tune", self._tune)
            await self._do("start", self._start)
            await self._recording.start()
            await self._put_load()
            await self._do("collect", self._collect)

    async def _put_load(self) -> None:
        phases = list(range(len(self._spec.workload.phases)))
        async with AsyncExitStack() as watches:
            for part in self._spec.parts:
                await watches.enter_async_context(self._watch(part))
            try:
                await self._do("warm_up", lambda: self._warm_up(phases[:-1]))
                async with self._profiling:
                    await self._do("measure", lambda: self._load(phases[-1:]))
            except (CommandError, HostError):
                await self._system.insist()  # a tool that finds no server is not what went wrong
                raise

    def _watch(self, part: Part) -> Monitoring:
        return Monitoring(
            self._reach.session(part.role),
            part.role,
            tuple(MONITORS.values()),
            self._control.emit,
            pids=self._system.pids(part.role),
            interval_s=self._spec.monitor_interval_s,
            cpus=server_cpus(part),
        )

    async def _look(self) -> None:
        new = [role for role in self._reach.roles if role not in self._record.facts]
        shown = await asyncio.gather(*(identify(self._reach.link(role)) for role in new), return_exceptions=True)
        raise_first(shown)
        known = {role: access for role, access in zip(new, shown, strict=True) if isinstance(access, Access)}
        await self._control.admit(known)
        looks = (self._look_at(role) for role in new)
        found = await asyncio.gather(*looks, return_exceptions=True)
        for facts in found:
            if isinstance(facts, FactsCollected):
                await self._emit(facts)
        raise_first(found)
        await self._clear_leftovers()
        check_cpus(self._spec, self._record)
        check_drivers(self._spec, self._record)
        drivers = [driver.name for driver in self._spec.drivers]
        hosts = f"driver host{'s' if len(drivers) > 1 else ''} {', '.join(drivers)}"
        members = "".join(f"{member.role} on {member.host.name}, " for member in self._spec.members)
        await self._say(f"SUT {self._spec.sut.name}, {members}{hosts}, target {', '.join(self._spec.urls)}")

    async def _look_at(self, role: Role) -> FactsCollected:
        def hold(taken: Taken) -> FencedSession:
            return self._reach.behind_fence(role, taken.directory, taken.claim)

        return await look_at_host(
            self._reach.link(role),
            role,
            self._spec,
            partial(self._reach.take, role, self._check),
            hold,
            self._control.libraries,
        )

    async def _clear_leftovers(self) -> None:
        """Put back what other runs have left on the hosts. HostError when something is still there: what the snapshot
        shows would not be the host's own state."""
        for role in self._reach.roles:
            leftovers = self._reach.leftovers(role)
            problems = await leftovers.clear()
            for line in leftovers.told:
                await self._say(line, level="warning")
            if leftovers.told:
                await self._control.tell_leftovers(role, tuple(leftovers.told))
            if problems:
                raise HostError(
                    f"{self._reach.link(role).host} is not as it was before another run: {'; '.join(problems)}.",
                    hint="Put that back, then restore the host on its page.",
                )

    async def _check_hosts(self) -> None:
        """Whether the hosts are as fast as ever, before anything is changed there: of an experiment's first run."""
        if self._control.keep_readings is None or "snapshot" in self._record.finished_phases:
            return
        sessions = {role: self._reach.session(role) for role in self._reach.roles}
        readings = await check_hosts(self._spec, sessions, self._check)
        for one in readings:
            if one.problem:
                name = self._spec.hosts[one.role].name
                await self._say(f"{CANARIES[one.check].title} of {name} was not checked: {one.problem}")
        await self._control.keep_readings(readings)

    async def _snapshot(self) -> None:
        for part in self._spec.parts:
            if (part.role, "before") not in self._record.snapshots:
                values = await snapshot.read(self._reach.session(part.role))
                await self._emit(SnapshotTaken("before", values, part.role))

    async def _tune(self) -> None:
        for part in self._spec.parts:
            host = self._reach.session(part.role)
            tuning = tuning_of(self._spec, part, host, self._record, self._emit, check=self._check)
            await tuning.create_instances(part.server, await own_address(host, part.host.target_address))
            for index, step in host_steps(part).items():
                self._check()
                await tuning.apply(index, step)

    async def _start(self) -> None:
        await self._profiling.prepare()
        await self._system.start()

    async def _warm_up(self, indexes: list[int]) -> None:
        await self._load(indexes)
        await self._system.settle()  # in this phase: once it is over, no other worker does it beside measured load

    async def _load(self, indexes: list[int]) -> None:
        reach, keep = self._reach, self._control.keep_file
        loading = Loading(
            [
                LoadSite(
                    self._spec,
                    role,
                    reach.session(role),
                    reach.directory(role),
                    self._record,
                    self._emit_load,
                    self._check,
                    keep,
                    self._control.max_file_bytes,
                )
                for role in self._spec.driver_roles
            ]
        )
        for index in indexes:
            self._check()
            await loading.run_phase(index, self._spec.workload.phases[index])

    async def _emit_load(self, event: AnyEvent) -> None:
        await self._emit(event)
        self._profiling.notice(event)

    async def _collect(self) -> None:
        await self._recording.collect()
        await self._profiling.collect()
        await self._system.keep_last_words()

    async def _do(self, phase: PhaseName, action: Callable[[], Awaitable[None]]) -> None:
        if phase in self._record.finished_phases:
            return
        self._phase = phase
        with bound(step=phase):
            self._check()
            await self._emit(PhaseStarted(phase, run_clock_s()))
            await action()
            await self._emit(PhaseFinished(phase, self._record.phase_s(phase)))

    def _check(self) -> None:
        self._control.check()
        if self._renewal is not None:
            self._renewal.check()

    async def _say(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None:
        await self._emit(Logged("runner", (text,), level))
