"""The recorders of a run: jobs on all of its hosts, from before the first load to the end of the last."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.base.errors import AgentError, ConnectError, FenceError, HostError
from agents.events import JobEnded, JobIntended, JobStarted, Logged, RecordingKept, Role
from agents.record import Record
from agents.recordings.base import Recorder
from agents.recordings.tools import ENVIRONMENT, MAX_FILE_BYTES, RECORDERS
from agents.remote.fetching import Fetched, fetch
from agents.remote.jobs import Job, JobStatus
from agents.running.control import Cancelled, Control
from agents.running.host_links import HostLinks, raise_first
from agents.running.preparation import insist_same_boot
from agents.spec import RunSpec


class Recording:
    """Safe to call again: a recorder that runs is found, not started twice, and a file that is kept stays as it is."""

    def __init__(
        self, spec: RunSpec, reach: HostLinks, record: Record, control: Control, check: Callable[[], None]
    ) -> None:
        self._load_s = spec.workload.load_s
        self._recorders = tuple(RECORDERS[name] for name in spec.workload.recorders)
        self._reach = reach
        self._record = record
        self._keep = control.keep_file
        self._emit = control.emit_into(record)
        self._check = check

    async def start(self) -> None:
        """Start every recorder on every host, unless the load has ended already."""
        if "measure" not in self._record.finished_phases:
            await self._each(self._start)

    async def collect(self) -> None:
        """End every recorder, and fetch and keep its file. What a recorder did not do is a warning, not a failure."""
        await self._each(self._collect)

    async def salvage(self) -> None:
        """Keep what was recorded of a run that did not come to the end of its load.

        What hinders it is said and is no further failure: the hosts have to be put back.
        """
        self._check = _go_on
        try:
            await self.collect()
        except FenceError:
            raise
        except AgentError as error:
            await self._say("sut", f"What was recorded was not kept: {error.message}", warning=True)

    async def _each(self, act: Callable[[Role, Recorder], Awaitable[None]]) -> None:
        pairs = [(role, recorder) for role in self._reach.roles for recorder in self._recorders]
        raise_first(await asyncio.gather(*(act(*pair) for pair in pairs), return_exceptions=True))

    async def _start(self, role: Role, recorder: Recorder) -> None:
        name, job = _name(role, recorder), self._job(role, recorder)
        command = recorder.command(self._load_s)
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, role, job.directory, secrets.token_hex(16)))
        cookie = self._record.jobs[name].cookie
        started = await job.start(command, cookie=cookie, environment=ENVIRONMENT, max_output_bytes=MAX_FILE_BYTES)
        insist_same_boot(self._record.facts[role], job.session.host, started.boot_id)
        if name not in self._record.started_jobs:
            await self._emit(JobStarted(name, role, job.directory, started.pid, cookie))
            await self._emit(Logged(role, (f"{recorder.name}: {command.shell()}",)))

    async def _collect(self, role: Role, recorder: Recorder) -> None:
        name = _name(role, recorder)
        if (role, recorder.name) in self._record.recordings or name not in self._record.jobs:
            return
        self._check()
        job = self._job(role, recorder)
        ran = (await job.status()).state == "running"
        left = await job.kill(cookie=self._record.jobs[name].cookie)
        status = await job.status()
        if name not in self._record.ended_jobs and not left:
            await self._emit(JobEnded(name, status.exit_status))
        if not ran:
            await self._say(role, f"{recorder.name} ended before the load did: {await self._why(job)}", warning=True)
        try:
            await self._fetch(role, recorder, job, status)
        except (FenceError, ConnectError, Cancelled):
            raise
        except AgentError as error:
            await self._say(role, f"What {recorder.name} recorded was not kept: {error.message}", warning=True)

    async def _fetch(self, role: Role, recorder: Recorder, job: Job, status: JobStatus) -> None:
        """Fetch the file, prove it by its checksum, and keep it."""

        async def on_progress(_done: int, _size: int) -> None:
            self._check()

        kept = recorder.file_of(role)
        with tempfile.TemporaryDirectory(prefix="benchhub-recording-") as folder:
            local, path = Path(folder) / "file", f"{job.directory}/out"
            fetched = await fetch(job.session, path, local, max_bytes=MAX_FILE_BYTES, on_progress=on_progress)
            _insist_whole(fetched, status, job.session.host, recorder)
            if self._keep is not None:
                await self._keep(kept, local, "text/plain; charset=utf-8")
        cut = f", and no more than these {MAX_FILE_BYTES // 1_000_000} MB are kept" if status.truncated else ""
        size = f"{fetched.size_bytes / 1e6:,.2f} MB, sha256 {fetched.sha256}"
        await self._say(role, f"{recorder.name}: {size}, kept as {kept}{cut}", warning=status.truncated)
        await self._emit(RecordingKept(role, recorder.name, kept, fetched.size_bytes, fetched.sha256))

    async def _why(self, job: Job) -> str:
        said = (await job.read("err", 0, 4000)).decode("utf-8", "replace").strip().splitlines()
        return said[-1][:300] if said else "it said nothing."

    async def _say(self, role: Role, text: str, *, warning: bool) -> None:
        await self._emit(Logged(role, (text,), "warning" if warning else "info"))

    def _job(self, role: Role, recorder: Recorder) -> Job:
        return Job(self._reach.session(role), f"{self._reach.directory(role)}/jobs/{_name(role, recorder)}")


def _go_on() -> None:
    """A run that has failed, or was cancelled, is not stopped once more."""


def _name(role: Role, recorder: Recorder) -> str:
    return f"{recorder.name}-{role}"


def _insist_whole(fetched: Fetched, status: JobStatus, host: str, recorder: Recorder) -> None:
    if status.out_sha256 is not None and fetched.sha256 != status.out_sha256:
        raise HostError(
            f"The file of {recorder.name} on {host} is not what it wrote: its checksum is another one.",
            hint="Did somebody write into the run's directory, or is the disk damaged?",
        )
