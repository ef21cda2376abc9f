"""The load phases: starts the tool once, follows it across cuts and worker deaths, reads its whole report."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable

from agents.drivers.base import Target
from agents.errors import CommandError
from agents.events import AnyEvent, JobEnded, JobIntended, JobStarted, LoadReported, LoadStarted, Logged
from agents.jobs import Job, JobStatus
from agents.monitors import MONITORS
from agents.record import Record
from agents.session import Session
from agents.spec import Phase, RunSpec
from agents.watch import Watch

MAX_OUTPUT_BYTES = 8 << 20
SELDOM_S = 5.0
LAST_LOOKS_S = 0.2
OVERTIME_S = 60.0
"""How long past its duration a load tool may take to print its report."""


class Loading:
    """Load on the SUT from the driver host. Safe to call again: a phase that has its report is passed by."""

    def __init__(
        self,
        spec: RunSpec,
        driver: Session,
        directory: str,
        record: Record,
        emit: Callable[[AnyEvent], Awaitable[None]],
        check: Callable[[], None],
    ) -> None:
        self._spec = spec
        self._driver = driver
        self._directory = directory
        self._record = record
        self._emit = emit
        self._check = check

    async def run_phase(self, index: int, phase: Phase) -> None:
        """Put load on the SUT for one phase, or go on following one that another worker started.

        CommandError when the tool did not run to its end; ParseError when its output is not a report.
        """
        if index in self._record.reports:
            return
        name = f"load-{index}"
        job = Job(self._driver, f"{self._directory}/jobs/{name}")
        await self._start(index, phase, name, job)
        started = self._record.started_jobs[name]
        monitors = [MONITORS[kind] for kind in ("cpu", "memory", "network", "threads")]
        async with Watch(
            self._driver,
            "driver",
            monitors,
            self._emit,
            pid=started.pid,
            interval_s=self._spec.monitor_interval_s,
            cpus=self._spec.workload.cpus,
        ):
            status = await self._follow(job, index, phase)
        await self._collect(index, phase, name, job, status)

    async def _start(self, index: int, phase: Phase, name: str, job: Job) -> None:
        workload = self._spec.workload
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, "driver", job.directory, secrets.token_hex(16)))
        if name in self._record.started_jobs:
            return
        files = workload.driver.files()
        for file, text in files.items():
            await self._driver.put(f"{self._directory}/files/{file}", text.encode())
        command = workload.driver.command(Target(self._spec.url), phase.duration_s)
        started = await job.start(
            command,
            cookie=self._record.jobs[name].cookie,
            cwd=f"{self._directory}/files",
            limits={"nofile": workload.nofile} if workload.nofile else {},
            cpus=workload.cpus,
            max_output_bytes=MAX_OUTPUT_BYTES,
        )
        at_unix_s = time.time()
        await self._emit(JobStarted(name, "driver", job.directory, started.pid, self._record.jobs[name].cookie))
        await self._emit(LoadStarted(index, phase.kind == "measure", phase.duration_s, at_unix_s))
        await self._emit(Logged("driver", (f"{phase.name}: {command.shell()}",)))

    async def _follow(self, job: Job, index: int, phase: Phase) -> JobStatus:
        """Wait for the tool's end. While it works it is looked at seldom: each look costs the driver host CPU."""
        started_s = self._record.loads[index].at_unix_s
        while True:
            status = await job.status()
            if status.state != "running":
                return status
            over_s = time.time() - started_s - phase.duration_s
            if over_s > OVERTIME_S:
                raise CommandError(
                    f"{self._spec.workload.driver.kind} still ran {over_s:.0f} s after its {phase.duration_s} s.",
                    hint="It was ended. Look at the server: a connection that never answers can hold the tool.",
                )
            await self._pause(LAST_LOOKS_S if over_s > -LAST_LOOKS_S else min(SELDOM_S, -over_s))

    async def _pause(self, seconds: float) -> None:
        """Sleep, but notice within a quarter of a second that the run was cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check()
            await asyncio.sleep(min(left, 0.25))

    async def _collect(self, index: int, phase: Phase, name: str, job: Job, status: JobStatus) -> None:
        tool = self._spec.workload.driver
        if status.state != "exited" or status.exit_status is None:
            raise CommandError(
                f"{tool.kind} on {self._driver.host} is gone and nobody knows how it ended (state {status.state}).",
                hint="Was the driver host restarted, or the process killed? The run cannot be trusted.",
            )
        out = await _whole(job, status)
        await self._emit(JobEnded(name, status.exit_status))
        report = tool.parse(out.decode("utf-8", "replace"))
        await self._emit(
            LoadReported(
                index,
                phase.kind == "measure",
                status.exit_status,
                out.decode("utf-8", "replace"),
                hashlib.sha256(out).hexdigest(),
                report.to_json(),
            )
        )
        if not report.complete:
            raise CommandError(f"{tool.kind} did not run: {report.error}", hint="See its output under Artifacts.")


async def _whole(job: Job, status: JobStatus) -> bytes:
    """Standard output then standard error, every byte; CommandError when it is more than a report can be."""
    if status.truncated or status.out_bytes + status.err_bytes > MAX_OUTPUT_BYTES:
        raise CommandError(f"The load tool printed more than {MAX_OUTPUT_BYTES >> 20} MB; that is no report.")
    parts = []
    for stream, size in (("out", status.out_bytes), ("err", status.err_bytes)):
        offset = 0
        while offset < size:
            chunk = await job.read("out" if stream == "out" else "err", offset, 1 << 20)
            if not chunk:
                raise CommandError(f"The output of the load tool ended at byte {offset} of {size}.")
            parts.append(chunk)
            offset += len(chunk)
    return b"".join(parts)
