"""Walks a run through its phases. Resumable from its record at any line, and it always restores the host."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from agents import snapshot
from agents.command import Command
from agents.errors import MISTAKE_HINT, AgentError, CommandError, ConnectError, FenceError, PlanError
from agents.events import (
    AnyEvent,
    ConfigurationCaptured,
    FactsCollected,
    Failed,
    JobEnded,
    JobIntended,
    JobStarted,
    Logged,
    PhaseFinished,
    PhaseName,
    PhaseStarted,
    Restored,
    Role,
    SnapshotTaken,
)
from agents.fencing import FencedSession
from agents.jobs import Job
from agents.link import PATIENCE_S, Link
from agents.loading import Loading
from agents.monitors import MONITORS
from agents.preparation import check_cpus, launch_of, look_at_host, server_cpus
from agents.readiness import listening_command, wait_until_ready
from agents.record import Record
from agents.redaction import masked
from agents.session import Session
from agents.spec import HostAddress, RunSpec
from agents.steps import is_host_step
from agents.steps.base import HostStep
from agents.tuning import Tuning
from agents.watch import Watch

Connect = Callable[[HostAddress], Awaitable[Session]]
MAX_LOG_BYTES = 256 << 10
CANCELLED_PATIENCE_S = 10.0
"""How long a cancelled run waits for a host that is away."""
ROLES: tuple[Role, Role] = ("sut", "driver")

logger = logging.getLogger(__name__)


class Cancelled(AgentError):
    """A person asked for the end of the run."""

    def __init__(self) -> None:
        super().__init__("The run was cancelled.", hint="The load was ended and the host is put back.")


@dataclass(frozen=True)
class Control:
    """What the runner asks its surroundings: how to connect, where events go, whether to stop, and its fence."""

    connect: Connect
    emit: Callable[[AnyEvent], Awaitable[None]]
    cancelled: Callable[[], bool]
    fence: int
    patience_s: float = PATIENCE_S


class Runner:
    """One run. `run` may be called on any record, from empty to almost finished, by any worker that holds the fence."""

    def __init__(self, run_key: str, spec: RunSpec, record: Record, control: Control) -> None:
        self._key = run_key
        self._spec = spec
        self._record = record
        self._control = control
        self._links: dict[str, Link] = {}
        self._phase: PhaseName = "connect"
        self._left: dict[Role, list[str]] = {role: [] for role in ROLES}

    async def run(self) -> None:
        """Forward to the end of load, then back: stop, restore, verify. A failure is an event, never an exception.

        Only FenceError (someone newer holds the run) and cancellation of the task leave without restoring: then
        another worker goes on from the record.
        """
        try:
            if self._record.failed is None and "collect" not in self._record.finished_phases:
                await self._forward_or_fail()
            if self._record.restored is None:
                await self._back()
        finally:
            for link in self._links.values():
                await link.close()

    async def _forward_or_fail(self) -> None:
        try:
            await self._forward()
        except FenceError:
            raise
        except AgentError as error:
            await self._fail(error)
        except Exception:
            logger.exception("run %s failed in phase %s in a way that nobody foresaw", self._key, self._phase)
            await self._fail(AgentError(f"BenchHub made a mistake in the phase {self._phase}.", hint=MISTAKE_HINT))

    async def _fail(self, error: AgentError) -> None:
        if self._control.cancelled():
            error = Cancelled()  # whatever went wrong after that, went wrong for this
        cancelled = isinstance(error, Cancelled)
        await self._emit(Failed(self._phase, error.message, error.hint, cancelled))
        await self._say(error.message, level="info" if cancelled else "error")

    async def _forward(self) -> None:
        await self._do("connect", self._open)
        await self._do("facts", self._look)
        await self._do("snapshot", lambda: self._snapshot("before"))
        await self._do("tune", self._tune)
        await self._do("start", self._start)
        phases = list(range(len(self._spec.workload.phases)))
        server = self._record.started_jobs["server"]
        async with Watch(
            await self._session("sut"),
            "sut",
            tuple(MONITORS.values()),
            self._emit,
            pid=server.pid,
            interval_s=self._spec.monitor_interval_s,
            cpus=server_cpus(self._spec),
        ):
            try:
                await self._do("warm_up", lambda: self._load(phases[:-1]))
                await self._do("measure", lambda: self._load(phases[-1:]))
            except CommandError:
                await self._insist_on_the_server()  # a tool that finds no server is not what went wrong
                raise
        await self._do("collect", self._collect)

    async def _back(self) -> None:
        """Ends in a Restored event whatever happens: proven equal, or what differs."""
        if "sut" in self._record.facts:  # else no host was touched yet
            await self._do_back("stop", self._stop)
            await self._do_back("restore", self._restore)
            await self._do_back("verify", self._verify)
        if not any(self._left.values()):
            await self._clean_up()
        on_sut, on_driver = (tuple(dict.fromkeys(self._left[role])) for role in ROLES)
        await self._emit(Restored(on_sut, on_driver))

    # Phases, in their order.

    async def _open(self) -> None:
        _raise_first(await asyncio.gather(*(self._link(role).open() for role in ROLES), return_exceptions=True))

    async def _look(self) -> None:
        new = [role for role in ROLES if role not in self._record.facts]
        looks = [look_at_host(self._link(role), role, self._spec, self._key) for role in new]
        found = await asyncio.gather(*looks, return_exceptions=True)
        for facts in found:
            if isinstance(facts, FactsCollected):
                await self._emit(facts)
        _raise_first(found)
        check_cpus(self._spec, self._record)
        await self._say(f"SUT {self._spec.sut.name}, driver host {self._spec.driver.name}, target {self._spec.url}")

    async def _snapshot(self, moment: str) -> None:
        result = await (await self._session("sut")).run(snapshot.command(), max_output_bytes=snapshot.MAX_BYTES)
        values = snapshot.parse(result.check("Reading all settings").stdout)
        await self._emit(SnapshotTaken("before" if moment == "before" else "after", values))

    async def _tune(self) -> None:
        tuning = await self._tuning()
        await tuning.create_instance(self._spec.application.server)
        for index, step in self._host_steps().items():
            self._check()
            await tuning.apply(index, step)

    async def _start(self) -> None:
        server, sut = self._spec.application.server, await self._session("sut")
        job, launch = Job(sut, f"{self._directory('sut')}/jobs/server"), launch_of(self._spec)
        instance = f"{self._directory('sut')}/instance"
        if "server" not in self._record.jobs:
            if (await sut.run(listening_command(server.port))).ok:
                raise PlanError(
                    f"Another server listens on port {server.port} of {sut.host}.",
                    hint="Stop it, or give the application another port.",
                )
            await self._emit(JobIntended("server", "sut", job.directory, secrets.token_hex(16)))
        cookie = self._record.jobs["server"].cookie
        started = await job.start(
            server.start_command(instance, launch),
            cookie=cookie,
            environment=server.environment(instance, launch),
            cwd=instance,
            limits=launch.limits,
            cpus=launch.cpus or server.cpus,
        )
        if "server" not in self._record.started_jobs:
            await self._emit(JobStarted("server", "sut", job.directory, started.pid, cookie))
        driver = await self._session("driver")
        url = self._spec.url.removesuffix(self._spec.workload.path) + server.ready.path
        await wait_until_ready(
            server.ready, url, driver=driver, server=job, read_log=lambda: self._server_log(job), check=self._check
        )
        await self._capture(job)

    async def _capture(self, job: Job) -> None:
        """What the machines really have now that the server runs; and what the server says it ignored."""
        server, sut = self._spec.application.server, await self._session("sut")
        directory = self._directory("sut")
        pid = self._record.started_jobs["server"].pid
        if pid is None:
            raise CommandError("The server's process is not known.", hint="See the server's log.")
        result = await sut.run(server.effective_command(f"{directory}/instance", pid), max_output_bytes=4 << 20)
        values = {f"sut.{k}": v for k, v in self._record.facts["sut"].profile.items()}
        values |= {f"driver.{k}": v for k, v in self._record.facts["driver"].profile.items()}
        values |= server.parse_effective(result.check("Reading the effective configuration").stdout)
        values |= await self._settings_now(sut)
        values["load_tool.version"] = self._record.facts["driver"].tool_version
        values["server.version"] = self._record.facts["sut"].tool_version
        shown = {path: masked(path, value).replace(directory, "$RUN") for path, value in values.items()}
        await self._emit(ConfigurationCaptured(shown))
        for problem in server.problems(await self._server_log(job)):
            await self._say(problem, level="warning")

    async def _settings_now(self, sut: Session) -> dict[str, str]:
        result = await sut.run(snapshot.command(), max_output_bytes=snapshot.MAX_BYTES)
        return snapshot.parse(result.check("Reading all settings").stdout)

    async def _load(self, indexes: list[int]) -> None:
        loading = Loading(
            self._spec,
            await self._session("driver"),
            self._directory("driver"),
            self._record,
            self._emit,
            self._check,
        )
        for index in indexes:
            self._check()
            await loading.run_phase(index, self._spec.workload.phases[index])

    async def _collect(self) -> None:
        """The server's last words."""
        job = Job(await self._session("sut"), f"{self._directory('sut')}/jobs/server")
        lines = (await self._server_log(job)).splitlines()
        await self._emit(Logged("server", tuple(lines[-200:])))
        await self._insist_on_the_server()

    async def _insist_on_the_server(self) -> None:
        """CommandError when the server did not live through the load, or its host was restarted."""
        job = Job(await self._session("sut"), f"{self._directory('sut')}/jobs/server")
        status = await job.status()
        if status.state == "running":
            return
        how = "in an unknown way" if status.exit_status is None else f"with exit status {status.exit_status}"
        last = (await self._server_log(job)).strip().splitlines()[-1:] if status.state != "absent" else []
        raise CommandError(
            f"The server ended during the load {how}.",
            hint=f"Its last line: {last[0][:300]}" if last else "It left no log; was its directory removed?",
        )

    async def _stop(self) -> None:
        """End every job that was ever intended; what is left counts as not restored."""
        ends = [self._end(name, intended) for name, intended in self._record.jobs.items()]
        _raise_first(await asyncio.gather(*ends, return_exceptions=True))

    async def _end(self, name: str, intended: JobIntended) -> None:
        try:
            job = Job(await self._session(intended.role), intended.directory)
            remaining = await job.kill(cookie=intended.cookie)
            if name not in self._record.ended_jobs and not remaining:
                await self._emit(JobEnded(name, (await job.status()).exit_status))
        except FenceError:
            raise
        except AgentError as error:
            remaining = (f"of unknown number ({error.message})",)
        self._left[intended.role] += [f"process {process} of {name} is still running" for process in remaining]

    async def _restore(self) -> None:
        self._left["sut"] += await (await self._tuning()).revert(self._host_steps())

    async def _verify(self) -> None:
        before = self._record.snapshots.get("before")
        if before is None:
            return
        await self._snapshot("after")
        self._left["sut"] += snapshot.differences(before.values, self._record.snapshots["after"].values)

    async def _clean_up(self) -> None:
        """Remove the run's directories; what they held is in the record. A failure here harms nothing."""
        for role in self._record.facts:
            try:
                await (await self._session(role)).mutate(Command(("rm", "-rf", "--", self._directory(role))))
            except FenceError:
                raise
            except AgentError as error:
                await self._say(f"The run's directory on {self._link(role).host} stays: {error.message}")

    # What the phases share.

    async def _do(self, phase: PhaseName, action: Callable[[], Awaitable[None]]) -> None:
        if phase in self._record.finished_phases:
            return
        self._phase = phase
        self._check()
        started = time.monotonic()
        await self._emit(PhaseStarted(phase))
        await action()
        await self._emit(PhaseFinished(phase, time.monotonic() - started))

    async def _do_back(self, phase: PhaseName, action: Callable[[], Awaitable[None]]) -> None:
        """One phase of the way back; what stops it is written down, and the next one is tried all the same."""
        self._phase = phase
        started = time.monotonic()
        await self._emit(PhaseStarted(phase))
        try:
            await action()
        except FenceError:
            raise
        except AgentError as error:
            self._left["sut"].append(f"{phase}: {error.message}")
        except Exception:
            logger.exception("run %s could not %s in a way that nobody foresaw", self._key, phase)
            self._left["sut"].append(f"{phase}: BenchHub made a mistake. {MISTAKE_HINT}")
        else:
            await self._emit(PhaseFinished(phase, time.monotonic() - started))

    def _check(self) -> None:
        if self._control.cancelled():
            raise Cancelled

    def _patience_s(self) -> float:
        longest_s = self._control.patience_s
        return min(longest_s, CANCELLED_PATIENCE_S) if self._control.cancelled() else longest_s

    def _link(self, role: str) -> Link:
        if role not in self._links:
            address = self._spec.sut if role == "sut" else self._spec.driver

            async def connect() -> Session:
                return await self._control.connect(address)

            async def trouble(message: str) -> None:
                await self._say(message, level="warning")

            self._links[role] = Link(address.name, connect, patience_s=self._patience_s, on_trouble=trouble)
        return self._links[role]

    async def _session(self, role: str) -> Session:
        """The host behind its fence; connects when this worker has not yet."""
        facts = self._record.facts.get(role)
        if facts is None:
            raise ConnectError(f"The {role} was not reached yet.")
        root = facts.directory.rpartition("/runs/")[0]
        return FencedSession(self._link(role), self._control.fence, f"{root}/fence")

    async def _tuning(self) -> Tuning:
        return Tuning(await self._session("sut"), self._directory("sut"), self._record, self._emit)

    def _directory(self, role: str) -> str:
        return self._record.facts[role].directory

    def _host_steps(self) -> dict[int, HostStep]:
        """The recipe's host steps by their place in it, counted from 1."""
        return {i: step for i, step in enumerate(self._spec.recipe.steps, start=1) if is_host_step(step)}

    async def _server_log(self, job: Job) -> str:
        """The end of the server's log: its own file, or what it printed."""
        path = self._spec.application.server.log_path(f"{self._directory('sut')}/instance")
        if path is not None:
            tail = Command(("tail", "-c", str(MAX_LOG_BYTES), "--", path))
            return (await job.session.run(tail, max_output_bytes=MAX_LOG_BYTES)).text
        status = await job.status()
        out = await job.read("out", max(0, status.out_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        err = await job.read("err", max(0, status.err_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        return (out + err).decode("utf-8", "replace")

    async def _emit(self, event: AnyEvent) -> None:
        await self._control.emit(event)
        self._record.add(event)

    async def _say(self, text: str, *, level: str = "info") -> None:
        await self._emit(Logged("runner", (text,), level))  # type: ignore[arg-type]


def _raise_first(results: Iterable[object]) -> None:
    """Two hosts were asked at once and both have answered; the first failure counts."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
