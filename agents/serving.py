"""The server under test: started once, waited for, looked at, and still there at the end of the load."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from agents import snapshot
from agents.command import Command
from agents.control import Control
from agents.errors import CommandError, NotReady, PlanError
from agents.events import ConfigurationCaptured, JobIntended, JobStarted, Logged
from agents.jobs import Job
from agents.preparation import boot_id_command, insist_same_boot, launch_of
from agents.reach import Reach
from agents.readiness import listening_command, wait_until_ready
from agents.record import Record
from agents.redaction import masked
from agents.session import Session
from agents.spec import RunSpec

MAX_LOG_BYTES = 256 << 10
LAST_LINES = 200


class Serving:
    """The server of one run. Safe to call again: a server that runs already is found, not started twice."""

    def __init__(
        self, spec: RunSpec, reach: Reach, record: Record, control: Control, check: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._server = spec.application.server
        self._reach = reach
        self._record = record
        self._check = check
        self._emit = control.emit_into(record)

    async def start(self) -> None:
        """Start the server, wait until it is ready, and capture what it and the hosts really have."""
        sut, instance = self._reach.session("sut"), self._instance()
        job, launch = self._job(), launch_of(self._spec)
        if "server" not in self._record.jobs:
            if (await sut.run(listening_command(self._server.port))).ok:
                raise PlanError(
                    f"Another server listens on port {self._server.port} of {sut.host}.",
                    hint="Stop it, or give the application another port.",
                )
            await self._emit(JobIntended("server", "sut", job.directory, secrets.token_hex(16)))
        cookie = self._record.jobs["server"].cookie
        started = await job.start(
            self._server.start_command(instance, launch),
            cookie=cookie,
            environment=self._server.environment(instance, launch),
            cwd=instance,
            limits=launch.limits,
            cpus=launch.cpus or self._server.cpus,
        )
        insist_same_boot(self._record.facts["sut"], sut.host, started.boot_id)
        if "server" not in self._record.started_jobs:
            await self._emit(JobStarted("server", "sut", job.directory, started.pid, cookie))
        ready = self._server.ready
        try:
            await wait_until_ready(
                ready,
                self._spec.url.removesuffix(self._spec.workload.path) + ready.path,
                driver=self._reach.session("driver"),
                server=job,
                read_log=self._log,
                check=self._check,
            )
        except (CommandError, NotReady):
            boot_id = (await sut.run(boot_id_command())).text.strip()
            insist_same_boot(self._record.facts["sut"], sut.host, boot_id)  # then that is why
            raise
        await self._capture(sut)

    async def keep_last_words(self) -> None:
        """The end of the server's log; HostError or CommandError when it did not live through the load."""
        lines = (await self._log()).splitlines()
        await self._emit(Logged("server", tuple(lines[-LAST_LINES:])))
        await self.insist()

    async def insist(self) -> None:
        """HostError when the server's host was restarted, CommandError when the server ended by itself."""
        status = await self._job().status()
        if status.state == "running":
            return
        sut = self._reach.session("sut")
        insist_same_boot(self._record.facts["sut"], sut.host, (await sut.run(boot_id_command())).text.strip())
        how = "in an unknown way" if status.exit_status is None else f"with exit status {status.exit_status}"
        last = (await self._log()).strip().splitlines()[-1:] if status.state != "absent" else []
        raise CommandError(
            f"The server ended during the load {how}.",
            hint=f"Its last line: {last[0][:300]}" if last else "It left no log; was its directory removed?",
        )

    async def _capture(self, sut: Session) -> None:
        """What the machines really have now that the server runs; and what the server says it ignored."""
        directory, pid = self._reach.directory("sut"), self._record.started_jobs["server"].pid
        if pid is None:
            raise CommandError("The server's process is not known.", hint="See the server's log.")
        result = await sut.run(self._server.effective_command(self._instance(), pid), max_output_bytes=4 << 20)
        values = {f"sut.{k}": v for k, v in self._record.facts["sut"].profile.items()}
        values |= {f"driver.{k}": v for k, v in self._record.facts["driver"].profile.items()}
        values |= self._server.parse_effective(result.check("Reading the effective configuration").stdout)
        values |= await snapshot.read(sut)
        values["load_tool.version"] = self._record.facts["driver"].tool_version
        values["server.version"] = self._record.facts["sut"].tool_version
        shown = {path: masked(path, value).replace(directory, "$RUN") for path, value in values.items()}
        await self._emit(ConfigurationCaptured(shown))
        for problem in self._server.problems(await self._log()):
            await self._emit(Logged("runner", (problem,), "warning"))

    async def _log(self) -> str:
        """The end of the server's log: its own file, or what it printed."""
        job, path = self._job(), self._server.log_path(self._instance())
        if path is not None:
            tail = Command(("tail", "-c", str(MAX_LOG_BYTES), "--", path))
            return (await job.session.run(tail, max_output_bytes=MAX_LOG_BYTES)).text
        status = await job.status()
        out = await job.read("out", max(0, status.out_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        err = await job.read("err", max(0, status.err_bytes - MAX_LOG_BYTES), MAX_LOG_BYTES)
        return (out + err).decode("utf-8", "replace")

    def _job(self) -> Job:
        return Job(self._reach.session("sut"), f"{self._reach.directory('sut')}/jobs/server")

    def _instance(self) -> str:
        return f"{self._reach.directory('sut')}/instance"
