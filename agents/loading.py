"""The load phases: starts the tool once, follows it across cuts and worker deaths, reads its whole report."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agents.collecting import KeepFile, collect_results
from agents.command import script
from agents.drivers.base import Driver, Target
from agents.errors import CommandError, HostError, ParseError
from agents.events import AnyEvent, JobEnded, JobIntended, JobStarted, LoadReported, LoadStarted, Logged, ResultFile
from agents.jobs import Job, JobStatus, Started, StreamName
from agents.monitors import MONITORS
from agents.preparation import insist_same_boot
from agents.record import Record
from agents.report import LoadReport
from agents.session import Session
from agents.spec import Phase, RunSpec
from agents.watch import Watch

MAX_OUTPUT_BYTES = 8 << 20
SELDOM_S = 5.0
LAST_LOOKS_S = 0.2
OVERTIME_S = 60.0
"""How long past its duration a load tool may take to print its report."""

_CLOCK = 'getconf CLK_TCK && read -r up rest </proc/uptime && echo "$up"'


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
        keep: KeepFile | None = None,
    ) -> None:
        self._spec = spec
        self._keep = keep
        self._driver = driver
        self._directory = directory
        self._record = record
        self._emit = emit
        self._check = check

    async def run_phase(self, index: int, phase: Phase) -> None:
        """Put load on the SUT for one phase, or go on following one that another worker started.

        CommandError when the tool did not run to its end, or printed no report in the measured phase.
        """
        if (known := self._record.reports.get(index)) is not None:
            self._insist(known)
            return
        name = f"load-{index}"
        job = Job(self._driver, f"{self._directory}/jobs/{name}")
        age_s = await self._start(index, phase, name, job)
        started = self._record.started_jobs[name]
        async with Watch(
            self._driver,
            "driver",
            tuple(MONITORS.values()),
            self._emit,
            pid=started.pid,
            interval_s=self._spec.monitor_interval_s,
            cpus=self._spec.workload.cpus,
        ):
            status = await self._follow(job, phase, age_s)
        await self._collect(index, phase, name, job, status)

    async def _start(self, index: int, phase: Phase, name: str, job: Job) -> float:
        """Start the tool unless it was started before; returns for how many seconds it has run."""
        workload = self._spec.workload
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, "driver", job.directory, secrets.token_hex(16)))
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
        insist_same_boot(self._record.facts["driver"], self._driver.host, started.boot_id)
        age_s = await self._age_s(started) if started.already else 0.0
        at_unix_s = time.time() - age_s
        if name not in self._record.started_jobs:
            await self._emit(JobStarted(name, "driver", job.directory, started.pid, self._record.jobs[name].cookie))
            await self._emit(Logged("driver", (f"{phase.name}: {command.shell()}",)))
        if index not in self._record.loads:
            await self._emit(LoadStarted(index, phase.kind == "measure", phase.duration_s, at_unix_s))
        return age_s

    async def _age_s(self, started: Started) -> float:
        """For how long the tool has run, by the driver host's own clock: another worker's may be hours off."""
        result = await self._driver.run(script(_CLOCK))
        ticks_per_s, uptime_s = map(float, result.check("Reading the driver host's clock").text.split())
        return max(0.0, uptime_s - started.start_ticks / ticks_per_s) if started.start_ticks is not None else 0.0

    async def _follow(self, job: Job, phase: Phase, age_s: float) -> JobStatus:
        """Wait for the tool's end. While it works it is looked at seldom: each look costs the driver host CPU."""
        end_s = time.monotonic() - age_s + phase.duration_s
        shown = 0
        while True:
            status = await job.status()
            shown = await self._show(job, status, shown)
            if status.state != "running":
                return status
            over_s = time.monotonic() - end_s
            if over_s > OVERTIME_S:
                raise CommandError(
                    f"{self._spec.workload.driver.kind} still ran {over_s:.0f} s after its {phase.duration_s} s.",
                    hint="It was ended. Look at the server: a connection that never answers can hold the tool.",
                )
            await self._pause(LAST_LOOKS_S if over_s > -LAST_LOOKS_S else min(SELDOM_S, -over_s))

    async def _show(self, job: Job, status: JobStatus, shown: int) -> int:
        """Show what the tool says of its progress since byte `shown`; returns up to where it has been shown."""
        tool = self._spec.workload.driver
        if type(tool).is_progress is Driver.is_progress or status.out_bytes <= shown:
            return shown
        whole, newline, _ = (await job.read("out", shown, 1 << 16)).rpartition(b"\n")
        lines = [line for line in whole.decode("utf-8", "replace").splitlines() if tool.is_progress(line)]
        if lines:
            await self._emit(Logged("driver", tuple(lines)))
        return shown + len(whole) + len(newline)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but notice within a quarter of a second that the run was cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check()
            await asyncio.sleep(min(left, 0.25))

    async def _collect(self, index: int, phase: Phase, name: str, job: Job, status: JobStatus) -> None:
        tool = self._spec.workload.driver
        if status.state != "exited" or status.exit_status is None:
            raise HostError(
                f"{tool.kind} on {self._driver.host} is gone and nobody knows how it ended (state {status.state}).",
                hint="Was the driver host restarted, or the process killed? This load does not count; launch it again.",
            )
        out = await _whole(job, status)
        await self._emit(JobEnded(name, status.exit_status))
        text, measured = out.decode("utf-8", "replace"), phase.kind == "measure"
        report, file = self._parsed(text, measured), None
        if tool.result_file and measured and report.complete:
            report, file = await self._results(index, report)
        sha256 = hashlib.sha256(out).hexdigest()
        reported = LoadReported(index, measured, status.exit_status, text, sha256, report.to_json(), file)
        await self._emit(reported)
        self._insist(reported)

    def _parsed(self, output: str, measured: bool) -> LoadReport:
        """The report; what cannot be read as one is kept as such, and in a warm-up phase it does no harm."""
        tool = self._spec.workload.driver
        try:
            return tool.parse(output)
        except ParseError as error:
            why = f"its output is no report: {error.message}"
            unknown = LoadReport(tool.kind, tool.formats[0], tool.load_model, tool.latency_basis, usable=False, why=why)
            return replace(unknown, complete=False, error=why) if measured else unknown

    async def _results(self, index: int, printed: LoadReport) -> tuple[LoadReport, ResultFile | None]:
        """The report in the tool's result file; one that is none makes the phase's report incomplete, and says why."""
        tool = self._spec.workload.driver
        try:
            return await collect_results(
                self._driver,
                f"{self._directory}/files",
                tool,
                printed,
                f"{index}-measure-{tool.result_file}",
                emit=self._emit,
                check=self._check,
                keep=self._keep,
            )
        except ParseError as error:
            line = f" (line {error.line})" if error.line is not None else ""
            why = f"its result file is no report: {error.message}{line}"
            return replace(printed, complete=False, error=why, usable=False, why=why), None

    def _insist(self, reported: LoadReported) -> None:
        if not reported.report["complete"]:
            kind, error = self._spec.workload.driver.kind, reported.report.get("error")
            raise CommandError(f"{kind} did not run: {error}", hint="See its output under Artifacts.")


async def _whole(job: Job, status: JobStatus) -> bytes:
    """Standard output then standard error, every byte; CommandError when it is more than a report can be."""
    if status.truncated or status.out_bytes + status.err_bytes > MAX_OUTPUT_BYTES:
        raise CommandError(
            f"The load tool printed more than could be kept ({MAX_OUTPUT_BYTES >> 20} MB, or the host's disk is full).",
            hint="That is no report. Look at what it prints, and at the free space of the driver host.",
        )
    parts = []
    streams: tuple[tuple[StreamName, int, str | None], ...] = (
        ("out", status.out_bytes, status.out_sha256),
        ("err", status.err_bytes, status.err_sha256),
    )
    for stream, size, sha256 in streams:
        offset, digest = 0, hashlib.sha256()
        while offset < size:
            chunk = await job.read(stream, offset, 1 << 20)
            if not chunk:
                raise CommandError(f"The output of the load tool ended at byte {offset} of {size}.")
            parts.append(chunk)
            digest.update(chunk)
            offset += len(chunk)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise HostError(
                "The output of the load tool is not what it wrote: its checksum on the host is another one.",
                hint="Did somebody write into the run's directory, or is the disk damaged? Launch the run again.",
            )
    return b"".join(parts)
