"""One server of a run: started once, waited for, looked at, and still there at the end of the load."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace

from agents.base.command import Command, CommandResult, failure
from agents.base.cpuset import parse_cpus
from agents.base.errors import AgentError, CommandError, FenceError, HostError, NotReady, PlanError
from agents.base.redaction import without_secrets
from agents.base.session import Session
from agents.events import GcPausesRead, JobIntended, JobStarted, Logged
from agents.formats import gc_log, jvm_log
from agents.record import Record
from agents.remote.jobs import Job
from agents.running import snapshot
from agents.running.control import Control
from agents.running.host_links import HostLinks, raise_first
from agents.running.own_address import own_address
from agents.running.preparation import boot_id_command, insist_same_boot, launch_of
from agents.running.profiler_files import profiled
from agents.running.readiness import listening_command, wait_until_ready
from agents.running.recipe_settings import built_in, environment_of, files_of, kept_by_steps
from agents.running.server_files import ServerFiles, log_file
from agents.running.server_names import server_job
from agents.running.tuning import instance_directory
from agents.spec import Part

MAX_LOG_BYTES = 256 << 10
MAX_GC_LOG_BYTES = 8 << 20
LAST_LINES = 200
MAX_PROBLEMS = 3
OF_EACH = ("process.cpus", "process.memory_nodes", "process.limits.nofile")
"""What is captured of every instance; the rest is captured of the first one, because it is the same."""


KILLED = 137
"""What a shell says of a process that SIGKILL ended: 128 + 9."""


class Serving:
    """A server of one run. Safe to call again: a server that runs already is found, not started twice.

    `called` is what sentences call it: "The server" where it is the only one.
    """

    def __init__(
        self,
        part: Part,
        called: str,
        reach: HostLinks,
        record: Record,
        control: Control,
        check: Callable[[], None],
    ) -> None:
        self._part = part
        self._role = part.role
        self._called = called
        self._server = part.server
        self._reach = reach
        self._record = record
        self._check = check
        self._emit = control.emit_into(record)
        self._keep = control.keep_file
        self._max_file_bytes = control.max_file_bytes
        self._kept: set[int] = set()

    @property
    def pids(self) -> list[int]:
        """The processes of all instances that are known to have started."""
        started = [self._record.started_jobs.get(self._name(number)) for number in range(self._server.count)]
        return [job.pid for job in started if job is not None and job.pid is not None]

    @property
    def part(self) -> Part:
        return self._part

    async def start(self) -> None:
        """Start every instance, and wait until all are ready."""
        sut = self._reach.session(self._role)
        address = await own_address(sut, self._part.host.target_address)
        for number in range(self._server.count):
            await self._start(sut, number, address)
        for number in range(self._server.count):
            await self._until_ready(sut, number, address)

    async def _start(self, sut: Session, number: int, address: str) -> None:
        server, name = self._server.instance(number, address), self._name(number)
        instance, job = self._instance(number), self._job(number)
        launch = profiled(launch_of(self._part), self._part, self._reach.directory(self._role))
        if name not in self._record.jobs:
            if (await sut.run(listening_command(server.port))).ok:
                raise PlanError(
                    f"Another server listens on port {server.port} of {sut.host}.",
                    hint="Stop it, or give the application another port.",
                )
            await self._emit(JobIntended(name, self._role, job.directory, secrets.token_hex(16)))
        cookie = self._record.jobs[name].cookie
        command = server.start_command(instance, launch)
        started = await job.start(
            replace(command, argv=(*launch.prefix, *command.argv)),
            cookie=cookie,
            environment=server.environment(instance, launch),
            cwd=instance,
            limits=launch.limits,
            cpus=launch.cpus or server.cpus,
        )
        insist_same_boot(self._record.facts[self._role], sut.host, started.boot_id)
        if name not in self._record.started_jobs:
            await self._emit(JobStarted(name, self._role, job.directory, started.pid, cookie))

    async def _until_ready(self, sut: Session, number: int, address: str) -> None:
        server = self._server.instance(number, address)
        ready = server.ready

        async def ask() -> str:
            command = server.ready_command(self._instance(number))
            return server.unready(await sut.run(command)) if command is not None else ""

        try:
            for role in self._part.asked_from:
                await wait_until_ready(
                    ready,
                    self._part.ready_urls[number],
                    driver=self._reach.session(role),
                    server=self._job(number),
                    log_file=self._log_file(number),
                    called=self._called,
                    read_log=lambda: self._log(number),
                    ask=ask,
                    check=self._check,
                )
        except (CommandError, NotReady) as error:
            boot_id = (await sut.run(boot_id_command())).text.strip()
            insist_same_boot(self._record.facts[self._role], sut.host, boot_id)  # then that is why
            refused = " ".join(self._server.problems(await self._log(number))[:MAX_PROBLEMS])
            raise type(error)(f"{error.message} {refused}".strip(), hint=error.hint) from error

    async def settle(self) -> None:
        """Let the instances finish what the warm-up left, all at once. CommandError when one of them cannot."""
        sut = self._reach.session(self._role)
        commands = [self._server.instance(n).settling_command(self._instance(n)) for n in range(self._server.count)]
        results = await asyncio.gather(*(sut.run(command) for command in commands if command), return_exceptions=True)
        raise_first(results)
        for result in results:
            if isinstance(result, CommandResult):
                result.check(f"Letting {self._server.title} finish the work of the warm-up")

    async def salvage(self) -> None:
        """Keep what the servers wrote in a run that did not come to its end.

        What hinders it is said and is no further failure: the hosts have to be put back.
        """
        jobs = self._record.started_jobs
        started = [n for n in range(self._server.count) if self._name(n) in jobs and n not in self._kept]
        try:
            for number in started:
                await self._keep_words(number)
        except FenceError:
            raise
        except AgentError as error:
            await self._emit(Logged("runner", (f"{self._called}'s log was not kept: {error.message}",), "warning"))

    async def _keep_words(self, number: int) -> None:
        """The end of the log as lines, all of it and of the files that were asked for as files."""
        name, sut, instance = self._name(number), self._reach.session(self._role), self._instance(number)
        lines = without_secrets(await self._log(number)).splitlines()  # before the cut, which may lie in a key
        await self._emit(Logged(name, tuple(lines[-LAST_LINES:])))
        files = ServerFiles(sut, instance, name, keep=self._keep, max_file_bytes=self._max_file_bytes, emit=self._emit)
        await files.keep_log(self._job(number), self._server.log_path(instance))
        await files.keep_named((*self._server.keep_files, *kept_by_steps(self._part)))
        self._kept.add(number)

    async def keep_last_words(self) -> None:
        """What the server wrote; AgentError when it cannot be read."""
        for number in range(self._server.count):
            await self._keep_words(number)

    async def read_gc_logs(self) -> None:
        """What the JVM's own log tells of each instance: pauses, heap, allocation, safepoints."""
        for number in range(self._server.count):
            await self._read_gc_log(number)

    async def _read_gc_log(self, number: int) -> None:
        """A server without such a log has no pauses to tell."""
        path = self._server.gc_log_path(self._instance(number))
        if path is None:
            return
        result = await self._reach.session(self._role).run(gc_log.read_command(path), max_output_bytes=MAX_GC_LOG_BYTES)
        if not result.ok:
            return
        pauses = gc_log.parse_pauses(result.text)
        await self._emit(
            GcPausesRead(
                tuple(pause.at_unix_s for pause in pauses),
                tuple(pause.pause_ms for pause in pauses),
                tuple(pause.full for pause in pauses),
                cut=len(pauses) >= gc_log.MAX_PAUSES,
                instance=number,
                role=self._role,
                course=jvm_log.named(jvm_log.course_of(result.text), number, self._server.count),
            )
        )

    async def insist(self) -> None:
        """HostError when the server's host was restarted, CommandError when an instance ended by itself."""
        for number in range(self._server.count):
            status = await self._job(number).status()
            if status.state == "running":
                continue
            sut = self._reach.session(self._role)
            insist_same_boot(self._record.facts[self._role], sut.host, (await sut.run(boot_id_command())).text.strip())
            how = "in an unknown way" if status.exit_status is None else f"with exit status {status.exit_status}"
            if status.exit_status == KILLED:
                how += ": it was killed, by somebody or by the kernel when memory ran out"
            last = (await self._log(number)).strip().splitlines()[-1:] if status.state != "absent" else []
            ended = failure(f"{self._called} ended during the load {how}.", status.exit_status, by_author=True)
            ended.hint = "It left no log; was its directory removed?"
            if last:
                ended.hint = f"Its last line: {last[0][:300]} Its whole log is kept: {self._log_file(number)}."
            raise ended

    async def captured(self) -> dict[str, str]:
        """What the server and its host really have now that it runs, flat; secrets are not hidden yet."""
        sut = self._reach.session(self._role)
        values = await files_of(sut, self._part, self._instance(0))
        values |= environment_of(self._part)
        values |= built_in(self._part, self._record)
        values |= await self._effective(sut, 0)
        for number in range(1, self._server.count):
            effective = await self._effective(sut, number)
            values |= {f"instances.{number + 1}.{path}": effective[path] for path in OF_EACH if path in effective}
        values |= await snapshot.read(sut)
        values["server.version"] = self._record.facts[self._role].tool_version
        return values

    async def tell_problems(self) -> None:
        """What the server says it ignored, as warnings."""
        for number in range(self._server.count):
            for problem in self._server.problems(await self._log(number)):
                await self._emit(Logged("runner", (problem,), "warning"))

    async def _effective(self, sut: Session, number: int) -> Mapping[str, str]:
        """What one instance really has. HostError when the kernel does not let it run on exactly its own CPUs."""
        server, started = self._server.instance(number), self._record.started_jobs[self._name(number)]
        if started.pid is None:
            hint = f"See the server's log: {self._log_file(number)}."
            raise CommandError(f"{self._called}'s process is not known.", hint=hint)
        command = server.effective_command(self._instance(number), started.pid)
        result = await sut.run(command, max_output_bytes=4 << 20)
        values = server.parse_effective(result.check("Reading the effective configuration").stdout)
        asked, found = launch_of(self._part).cpus or server.cpus, values.get("process.cpus")
        if asked and found is not None and parse_cpus(found) != parse_cpus(asked):
            raise HostError(
                f"The server on port {server.port} was bound to the CPUs {asked}, but /proc shows {found}.",
                hint="Does it, or a service on the host, change the affinity of its process?",
            )
        return values

    async def _log(self, number: int = 0) -> str:
        """The end of the server's log: its own file, or what it printed."""
        job, path = self._job(number), self._server.log_path(self._instance(number))
        if path is not None:
            tail = Command(("tail", "-c", str(MAX_LOG_BYTES), "--", path))
            return (await job.session.run(tail, max_output_bytes=MAX_LOG_BYTES)).text
        status = await job.status()
        out = await job.read("out", max(0, status.out_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        err = await job.read("err", max(0, status.err_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        return (out + err).decode("utf-8", "replace")

    def _job(self, number: int) -> Job:
        return Job(self._reach.session(self._role), f"{self._reach.directory(self._role)}/jobs/{self._name(number)}")

    def _instance(self, number: int) -> str:
        return instance_directory(self._reach.directory(self._role), number, self._role)

    def _name(self, number: int) -> str:
        """The job of the instance with this number, counted from 0."""
        return server_job(self._role, number)

    def _log_file(self, number: int) -> str:
        return log_file(self._name(number))
