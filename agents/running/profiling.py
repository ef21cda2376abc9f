"""The profilers of a run: each a job on its server's host, in a window of the measured load, its result fetched after.

What a profiler did not do is a warning: the run's own figures are there all the same, and count nowhere anyway. Its job
and its files are the run's, so the way back ends and removes them whoever walks it.
"""

from __future__ import annotations

import asyncio
import gzip
import secrets
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.base.clock import run_clock_s
from agents.base.command import Command, script
from agents.base.errors import AgentError, ConnectError, FenceError, HostError
from agents.events import AnyEvent, JobEnded, JobIntended, JobStarted, LoadStarted, Logged, ProfileTaken
from agents.profilers.base.window import (
    MIN_WINDOW_S,
    TOO_SHORT_STATUS,
    Window,
    after_command,
    parse_window,
    window_command,
)
from agents.profilers.choosing import Chosen
from agents.profilers.topdown import NO_PMU, figures_of, read_counts
from agents.profiles.base.taken import TakenProfile
from agents.record import Record
from agents.remote.fetching import fetch
from agents.remote.jobs import Job, JobStatus
from agents.running.common_start import uptime_s
from agents.running.control import Cancelled, Control
from agents.running.host_links import HostLinks
from agents.running.profile_parts import read_parts
from agents.running.profiler_files import bring, converted, folder_of
from agents.running.system import System
from agents.spec import Part, RunSpec
from agents.system import LOADED

MARGIN_RATIO, LEAST_MARGIN_S, MOST_MARGIN_S = 0.1, 0.5, 5.0
"""Of the measured load, before the window and after it: what begins and ends is not what is asked for."""
MAX_FILE_BYTES = 256_000_000
PATIENCE_S = 120.0
LONGER = "Measure for longer, or with less beside it on the host."
LOOK_S = 0.25


class Profiling:
    """Safe to call again: a profiler that runs is found, and a profile that was taken stays as it is."""

    def __init__(
        self,
        spec: RunSpec,
        reach: HostLinks,
        record: Record,
        control: Control,
        check: Callable[[], None],
        system: System,
    ) -> None:
        self._index = len(spec.workload.phases) - 1
        self._parts = tuple(part for part in spec.parts if part.profilers)
        self._reach = reach
        self._record = record
        self._control = control
        self._emit = control.emit_into(record)
        self._check = check
        self._system = system
        self._task: asyncio.Task[None] | None = None
        self._under_way = asyncio.Event()

    def notice(self, event: AnyEvent) -> None:
        """Hear of an event of the load that was stored."""
        if isinstance(event, LoadStarted) and event.index == self._index:
            self._under_way.set()

    async def prepare(self) -> None:
        """Bring what the profilers need, before the servers start."""
        for part in self._parts:
            session, directory = self._reach.session(part.role), self._reach.directory(part.role)
            await bring(session, part, directory, self._control.libraries)

    async def __aenter__(self) -> Profiling:
        if self._parts and "measure" not in self._record.finished_phases:
            if self._index in self._record.loads:
                self._under_way.set()
            self._task = asyncio.create_task(self._begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            if not self._task.cancelled():
                self._task.result()

    async def _begin(self) -> None:
        """Start every profiler once the measured load is under way."""
        await self._under_way.wait()
        load = self._record.loads[self._index]
        margin_s = margin_of(load.duration_s)
        await asyncio.sleep(max(0.0, load.at_unix_s + margin_s - run_clock_s()))
        pairs = [(part, chosen) for part in self._parts for chosen in part.profilers]
        await asyncio.gather(*(self._start(part, chosen, load) for part, chosen in pairs))

    async def _start(self, part: Part, chosen: Chosen, load: LoadStarted) -> None:
        name, job = _job_name(part, chosen), self._job(part, chosen)
        try:
            if name in self._record.started_jobs:
                return
            session = self._reach.session(part.role)
            end_s = load.at_unix_s + load.duration_s - margin_of(load.duration_s)
            left_s = end_s - run_clock_s()
            if left_s < MIN_WINDOW_S:
                await self._say(part, f"There is no time left for {chosen.name}: the load is about to end.")
                return
            until_s = await uptime_s(session) + left_s
            folder, pids = folder_of(self._reach.directory(part.role), part.role), self._system.pids(part.role)
            command = window_command(chosen.profiler, chosen.event, folder, chosen.key, until_s=until_s, pids=pids)
            if name not in self._record.jobs:
                await self._emit(JobIntended(name, part.role, job.directory, secrets.token_hex(16)))
            cookie = self._record.jobs[name].cookie
            started = await job.start(command, cookie=cookie)
            await self._emit(JobStarted(name, part.role, job.directory, started.pid, cookie))
            await self._emit(Logged(part.role, (f"{chosen.name}: profiles {left_s:.1f} s of the load",)))
        except (FenceError, ConnectError, Cancelled):
            raise
        except AgentError as error:
            await self._say(part, f"{chosen.name} did not start: {error.message}")

    async def collect(self) -> None:
        """Wait for every profiler's end, fetch what it wrote, fold and keep it."""
        for part in self._parts:
            for chosen in part.profilers:
                if _key(part, chosen) in self._record.profiles or _job_name(part, chosen) not in self._record.jobs:
                    continue
                try:
                    await self._collect(part, chosen)
                except (FenceError, ConnectError, Cancelled):
                    raise
                except AgentError as error:
                    await self._say(part, f"There is no profile of {chosen.name}: {error.message} {error.hint}".strip())

    async def _collect(self, part: Part, chosen: Chosen) -> None:
        job, name = self._job(part, chosen), _job_name(part, chosen)
        status = await self._until_ended(job)
        if name not in self._record.ended_jobs:
            await self._emit(JobEnded(name, status.exit_status))
        if status.exit_status == TOO_SHORT_STATUS:
            raise HostError("It took so long to begin that nothing of the window was left.", hint=LONGER)
        if status.exit_status != 0:
            raise HostError(await _last_words(job, "It did not come to its end"))
        window = parse_window((await job.read("out", 0, 1 << 16)).decode("utf-8", "replace"))
        folder = folder_of(self._reach.directory(part.role), part.role)
        if (after := after_command(chosen.profiler, chosen.event, folder, chosen.key)) is not None:
            await self._make(part, f"{name}-after", after)
        with tempfile.TemporaryDirectory(prefix="benchhub-profile-") as temporary:
            files = await self._fetch(job, f"{folder}/{chosen.key}", Path(temporary))
            if chosen.profiler.converter is not None:
                files = await converted(chosen.profiler.converter, self._control.libraries, files, Path(temporary))
            if chosen.profiler.counts_only:
                await self._keep_counters(part, chosen, window, files[0])
            else:
                await self._keep_stacks(part, chosen, window, files)

    async def _make(self, part: Part, name: str, command: Command) -> None:
        """What the profiler makes of its data when the load is over; CommandError when it cannot."""
        job = Job(self._reach.session(part.role), f"{self._reach.directory(part.role)}/jobs/{name}")
        if name not in self._record.jobs:
            await self._emit(JobIntended(name, part.role, job.directory, secrets.token_hex(16)))
        await job.start(command, cookie=self._record.jobs[name].cookie)
        status = await self._until_ended(job)
        if name not in self._record.ended_jobs:
            await self._emit(JobEnded(name, status.exit_status))
        if status.exit_status != 0:
            raise HostError(await _last_words(job, "Its result could not be made"))

    async def _until_ended(self, job: Job) -> JobStatus:
        """The job's state when it has ended. HostError when it goes on for too long."""
        end_s = run_clock_s() + PATIENCE_S
        while (status := await job.status()).state == "running":
            if run_clock_s() > end_s:
                raise HostError(f"It still ran {PATIENCE_S:.0f} s after the load.")
            self._check()
            await asyncio.sleep(LOOK_S)
        return status

    async def _fetch(self, job: Job, out: str, into: Path) -> list[Path]:
        listed = await job.session.run(script('for one in "$1".*.part; do [ -f "$one" ] && echo "$one"; done; :', out))
        paths = listed.check(f"Looking for profiles on {job.session.host}").text.splitlines()
        if not paths:
            raise HostError("It wrote nothing.")

        async def on_progress(_done: int, _size: int) -> None:
            self._check()

        found = []
        for number, path in enumerate(paths):
            local = into / f"part-{number}"
            await fetch(job.session, path, local, max_bytes=MAX_FILE_BYTES, on_progress=on_progress)
            found.append(local)
        return found

    async def _keep_stacks(self, part: Part, chosen: Chosen, window: Window, files: list[Path]) -> None:
        parts = await asyncio.to_thread(read_parts, files)
        packed = await asyncio.to_thread(gzip.compress, parts.content, 6, mtime=0)
        start_s, end_s, requests = await self._on_the_load(part, window)
        taken = TakenProfile(
            profiler=chosen.profiler.kind,
            role="" if part.role == LOADED else part.role,
            event=chosen.event,
            engine=window.engine,
            window_s=(start_s, end_s),
            cpu_time_s=window.cpu_time_s or None,
            requests=requests or None,
            samples=parts.samples,
            lost_samples=parts.lost_samples,
            clock_s=self._clock_s(part, chosen, window, start_s),
            form=parts.form,
        )
        file = "" if self._control.keep_profile is None else await self._control.keep_profile(taken, packed)
        await self._told(part, chosen, window, (start_s, end_s), requests, taken, file, {})

    async def _keep_counters(self, part: Part, chosen: Chosen, window: Window, file: Path) -> None:
        content = await asyncio.to_thread(file.read_bytes)
        counters = figures_of(read_counts(content.decode("utf-8", "replace")))
        start_s, end_s, requests = await self._on_the_load(part, window)
        kept = f"{chosen.key}-{part.role}.csv"
        if self._control.keep_file is not None:
            await self._control.keep_file(kept, content, "text/csv; charset=utf-8")
        if "instructions_per_cycle" not in counters:
            await self._emit(Logged(part.role, (NO_PMU,)))
        taken = TakenProfile(chosen.profiler.kind)
        await self._told(part, chosen, window, (start_s, end_s), requests, taken, kept, counters)

    async def _told(
        self,
        part: Part,
        chosen: Chosen,
        window: Window,
        window_s: tuple[float, float],
        requests: int | None,
        taken: TakenProfile,
        file: str,
        counters: Mapping[str, float],
    ) -> None:
        said = f"{chosen.name} by {window.engine}: {window_s[0]:.1f} to {window_s[1]:.1f} s of the load, "
        said += f"{window.cpu_time_s:.2f} s of CPU time, {'unknown' if requests is None else requests} requests, "
        said += f"kept as {file}" if file else "not kept"
        await self._emit(Logged(part.role, (said,)))
        await self._emit(
            ProfileTaken(
                *_key(part, chosen),
                window.engine,
                *window_s,
                window.cpu_time_s,
                requests,
                taken.samples,
                taken.lost_samples,
                file,
                counters,
            )
        )

    async def _on_the_load(self, part: Part, window: Window) -> tuple[float, float, int | None]:
        """The window in seconds since the measured load began, and the requests that were answered in it."""
        load = self._record.loads[self._index]
        asked_s = run_clock_s()
        host_s = await uptime_s(self._reach.session(part.role))
        ahead_s = host_s - (asked_s + run_clock_s()) / 2
        begin_s, end_s = (round(at - ahead_s - load.at_unix_s, 3) for at in (window.begin_s, window.end_s))
        driver = self._record.facts.get("driver")
        offset_s = (driver.clock_offset_s if driver else None) or 0.0
        report = self._record.reports[self._index].report
        return begin_s, end_s, requests_in(report, load, begin_s, end_s, offset_s)

    def _clock_s(self, part: Part, chosen: Chosen, window: Window, start_s: float) -> float | None:
        """What the clock of the profiler's files showed when the load began; None: nobody knows."""
        if chosen.profiler.clock == "uptime":
            return window.begin_s - start_s
        if chosen.profiler.clock == "unix":
            facts = self._record.facts.get(part.role)
            return self._record.loads[self._index].at_unix_s + ((facts.clock_offset_s if facts else None) or 0.0)
        return None

    async def _say(self, part: Part, text: str) -> None:
        await self._emit(Logged(part.role, (text,), "warning"))

    def _job(self, part: Part, chosen: Chosen) -> Job:
        directory = self._reach.directory(part.role)
        return Job(self._reach.session(part.role), f"{directory}/jobs/{_job_name(part, chosen)}")


def margin_of(duration_s: float) -> float:
    """Seconds of a load of that many seconds that are left out before the window, and after it."""
    return min(MOST_MARGIN_S, max(LEAST_MARGIN_S, MARGIN_RATIO * duration_s))


def requests_in(
    report: Mapping[str, Any], load: LoadStarted, begin_s: float, end_s: float, clock_offset_s: float = 0.0
) -> int | None:
    """Requests answered between two moments of the load: counted where the tool tells its course, else its share.

    `begin_s` and `end_s` are on the load's clock, `clock_offset_s` is how far the driver host's clock is ahead. None:
    the tool counts no requests.
    """
    if course := report.get("course"):
        step_s, total = float(course["step_s"]), 0.0
        for at_unix_s, count in zip(course["ended_unix_s"], course["requests"], strict=True):
            at_s = float(at_unix_s) - clock_offset_s - load.at_unix_s
            shared_s = min(end_s, at_s + step_s) - max(begin_s, at_s)
            total += float(count) * max(0.0, shared_s) / step_s
        return round(total)
    requests = report.get("requests")
    duration_s = float(report.get("duration_s") or load.duration_s)
    return None if requests is None or duration_s <= 0 else round(requests * (end_s - begin_s) / duration_s)


async def _last_words(job: Job, otherwise: str) -> str:
    with suppress(AgentError):
        said = (await job.read("err", 0, 4000)).decode("utf-8", "replace").strip().splitlines()
        return said[-1][:300] if said else f"{otherwise}."
    return f"{otherwise}."


def _job_name(part: Part, chosen: Chosen) -> str:
    return f"profile-{chosen.key}-{part.role}"


def _key(part: Part, chosen: Chosen) -> tuple[str, str, str]:
    return "" if part.role == LOADED else part.role, chosen.profiler.kind, chosen.event
