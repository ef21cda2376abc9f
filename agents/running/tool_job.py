"""One load tool at work on a driver host: started once, followed across cuts and worker deaths, read whole."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from agents.base.command import Command
from agents.base.errors import HostError, ParseError, ProgramError
from agents.base.session import Session
from agents.drivers.base.driver import Driver, Target
from agents.events import AnyEvent, JobEnded, JobIntended, JobStarted, Logged, ResultFile, Role
from agents.record import Record
from agents.remote.jobs import Job, JobStatus, Started, StreamName
from agents.results.report import LoadReport
from agents.running.collecting import MAX_FILE_BYTES, KeepFile, collect_results
from agents.running.common_start import HostClock, late_s, uptime_s, waiting
from agents.running.derived_file import make_byproduct
from agents.running.preparation import insist_same_boot
from agents.spec import Phase, RunSpec

MAX_OUTPUT_BYTES = 8 << 20
SELDOM_S = 5.0
LAST_LOOKS_S = 0.2
OVERTIME_S = 300.0
"""How long past its duration a load tool may take to print its report."""

_TICKS_PER_S = Command(("getconf", "CLK_TCK"))


@dataclass(frozen=True)
class Piece:
    """What one tool left behind. `output` is its standard output, then its standard error; `late_s` and `clock_error_s`
    see LoadPart."""

    role: Role
    url: str
    exit_status: int
    output: bytes
    report: LoadReport
    result_file: ResultFile | None
    late_s: float | None = None
    clock_error_s: float = 0.0


@dataclass(frozen=True)
class LoadSite:
    """Where tools of a run work: a driver host, the run's directory on it, and what the run tells and asks."""

    spec: RunSpec
    role: Role
    driver: Session
    directory: str
    record: Record
    emit: Callable[[AnyEvent], Awaitable[None]]
    check: Callable[[], None]
    keep: KeepFile | None = None
    max_file_bytes: int = MAX_FILE_BYTES


class ToolJob:
    """The tool of phase `index` that requests `url`; `number` tells those apart that run at the same time.

    Every method may be called again by whoever goes on with the run.
    """

    def __init__(self, site: LoadSite, *, index: int, number: int, url: str) -> None:
        self._workload = site.spec.workload
        self.role = site.role
        self._driver = site.driver
        self._record = site.record
        self._emit = site.emit
        self._check = site.check
        self._keep = site.keep
        self._max_file_bytes = site.max_file_bytes
        self._index = index
        self._phase: Phase = site.spec.workload.phases[index]
        self._tool: Driver = site.spec.tool_of(self._phase)
        self._url = url
        self._suffix = f"-{number}" if number else ""
        self.name = f"load-{index}{self._suffix}"
        self._files = f"{site.directory}/files{self._suffix}"
        self._job = Job(site.driver, f"{site.directory}/jobs/{self.name}")

    @property
    def _intended(self) -> JobIntended:
        return self._record.jobs[self.name]

    async def prepare(self) -> None:
        """Put what the tool needs in its directory."""
        if self._suffix:  # the first one's was made with the run's own directory
            made = await self._driver.mutate(Command(("mkdir", "-p", "--", self._files)))
            made.check(f"Making a directory on {self._driver.host}")
        for file, text in self._tool.files().items():
            await self._driver.put(f"{self._files}/{file}", text.encode())

    async def intend(self, clock: HostClock | None = None, begins_s: float = 0.0) -> None:
        """Write down that the tool is started, at `begins_s` of the controller's monotonic clock when there is one."""
        due_s, error_s = (clock.offset_s + begins_s, clock.error_s) if clock else (None, 0.0)
        cookie = secrets.token_hex(16)
        await self._emit(JobIntended(self.name, self.role, self._job.directory, cookie, False, due_s, error_s))

    async def start(self) -> float:
        """Start the tool unless it was started before; returns for how many seconds it has run, negative = it waits."""
        command = self._tool.command(Target(self._url), self._phase.duration_s)
        cookie, due_s = self._intended.cookie, self._intended.begins_at_uptime_s
        started = await self._job.start(
            command if due_s is None else waiting(command, due_s, self._began_file),
            cookie=cookie,
            cwd=self._files,
            limits={"nofile": self._workload.nofile} if self._workload.nofile else {},
            cpus=self._workload.cpus,
            max_output_bytes=MAX_OUTPUT_BYTES,
        )
        insist_same_boot(self._record.facts[self.role], self._driver.host, started.boot_id)
        if self.name not in self._record.started_jobs:
            await self._emit(JobStarted(self.name, self.role, self._job.directory, started.pid, cookie))
            await self._emit(Logged(self.role, (f"{self._phase.name}: {command.shell()}",)))
        if due_s is not None:
            return await uptime_s(self._driver) - due_s
        return await self._age_s(started) if started.already else 0.0

    @property
    def _began_file(self) -> str:
        return f"{self._files}/began-{self.name}"

    async def _age_s(self, started: Started) -> float:
        """For how long the tool has run, by the driver host's own clock: another worker's may be hours off."""
        ticks_per_s = float((await self._driver.run(_TICKS_PER_S)).check("Reading the driver host's clock").text)
        now_s = await uptime_s(self._driver)
        return max(0.0, now_s - started.start_ticks / ticks_per_s) if started.start_ticks is not None else 0.0

    async def follow(self, age_s: float) -> JobStatus:
        """Wait for the tool's end. While it works it is looked at seldom: each look costs the driver host CPU.

        Raises ProgramError when it goes on long after its time.
        """
        end_s = time.monotonic() - age_s + self._phase.duration_s
        shown = 0
        while True:
            status = await self._job.status()
            shown = await self._show(status, shown)
            if status.state != "running":
                return status
            over_s = time.monotonic() - end_s
            if over_s > OVERTIME_S:
                raise ProgramError(
                    f"{self._tool.kind} still ran {over_s:.0f} s after its {self._phase.duration_s} s.",
                    hint="It was ended. Look at the server: a connection that never answers can hold the tool.",
                )
            await self._pause(LAST_LOOKS_S if over_s > -LAST_LOOKS_S else min(SELDOM_S, -over_s))

    async def _show(self, status: JobStatus, shown: int) -> int:
        """Show what the tool says of its progress since byte `shown`; returns up to where it has been shown."""
        tool = self._tool
        if type(tool).is_progress is Driver.is_progress or status.out_bytes <= shown:
            return shown
        whole, newline, _ = (await self._job.read("out", shown, 1 << 16)).rpartition(b"\n")
        lines = [line for line in whole.decode("utf-8", "replace").splitlines() if tool.is_progress(line)]
        if lines:
            await self._emit(Logged(self.role, tuple(lines)))
        return shown + len(whole) + len(newline)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but notice within a quarter of a second that the run was cancelled."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._check()
            await asyncio.sleep(min(left, 0.25))

    async def collect(self, status: JobStatus) -> Piece:
        """What the tool left behind. HostError when nobody knows how it ended."""
        if status.state != "exited" or status.exit_status is None:
            raise HostError(
                f"{self._tool.kind} on {self._driver.host} is gone and nobody knows how it ended "
                f"(state {status.state}).",
                hint="Was the driver host restarted, or the process killed? This load does not count; launch it again.",
            )
        out = await _whole(self._job, status)
        if self.name not in self._record.ended_jobs:
            await self._emit(JobEnded(self.name, status.exit_status))
        measured = self._phase.kind == "measure"
        report, file = self._parsed(out.decode("utf-8", "replace"), measured), None
        if self._tool.result_file and measured and report.complete:
            report, file = await self._results(report)
        if measured and report.complete:
            await self._byproduct()
        due_s = self._intended.begins_at_uptime_s
        late = None if due_s is None else await late_s(self._driver, due_s, self._began_file)
        return Piece(self.role, self._url, status.exit_status, out, report, file, late, self._intended.clock_error_s)

    def _parsed(self, output: str, measured: bool) -> LoadReport:
        """The report; what cannot be read as one is kept as such, and in a warm-up phase it does no harm."""
        tool = self._tool
        try:
            return tool.parse(output)
        except ParseError as error:
            why = f"its output is no report: {error.message}"
            unknown = LoadReport(tool.kind, tool.form, tool.load_model, tool.latency_basis, usable=False, why=why)
            return replace(unknown, complete=False, error=why) if measured else unknown

    async def _results(self, printed: LoadReport) -> tuple[LoadReport, ResultFile | None]:
        """The report in the tool's result file; one that is none makes the phase's report incomplete, and says why."""
        try:
            return await collect_results(
                self._driver,
                self._files,
                self._tool,
                printed,
                self._kept_as(self._tool.result_file),
                source=self.role,
                emit=self._emit,
                check=self._check,
                keep=self._keep,
                max_file_bytes=self._max_file_bytes,
            )
        except ParseError as error:
            line = f" (line {error.line})" if error.line is not None else ""
            why = f"its result file is no report: {error.message}{line}"
            return replace(printed, complete=False, error=why, usable=False, why=why), None

    async def _byproduct(self) -> None:
        """The file that the tool makes of its results, where it is asked for one; without it the run counts as well."""
        wanted = self._tool.byproduct()
        if wanted is None or self._keep is None:
            return
        name = f"report-{self._index}{self._suffix}"
        job = Job(self._driver, f"{self._job.directory.rpartition('/')[0]}/{name}")
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, self.role, job.directory, secrets.token_hex(16)))
        cookie = self._record.jobs[name].cookie
        said = await make_byproduct(
            job,
            wanted,
            self._files,
            cookie,
            self._kept_as(wanted.file),
            check=self._check,
            keep=self._keep,
            max_file_bytes=self._max_file_bytes,
        )
        if name not in self._record.ended_jobs:
            await self._emit(JobEnded(name, (await job.status()).exit_status))
        await self._emit(Logged(self.role, (said,)))

    def _kept_as(self, file: str) -> str:
        return f"{self._index}-measure{self._suffix}-{file}"


async def _whole(job: Job, status: JobStatus) -> bytes:
    """Standard output then standard error, every byte; ProgramError when it is more than a report can be."""
    if status.truncated or status.out_bytes + status.err_bytes > MAX_OUTPUT_BYTES:
        raise ProgramError(
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
                raise HostError(
                    f"The output of the load tool ended at byte {offset} of {size}.",
                    hint="Did somebody write into the run's directory, or is the disk damaged? Launch the run again.",
                )
            parts.append(chunk)
            digest.update(chunk)
            offset += len(chunk)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise HostError(
                "The output of the load tool is not what it wrote: its checksum on the host is another one.",
                hint="Did somebody write into the run's directory, or is the disk damaged? Launch the run again.",
            )
    return b"".join(parts)
