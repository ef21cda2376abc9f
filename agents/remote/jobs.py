"""Jobs that go on without us: started once, followed by offset, adopted by any session, ended whole.

The job's directory on the host is the record; see `agents.remote.job_commands` for its files.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from agents.base.command import Command, CommandResult
from agents.base.errors import CommandError
from agents.base.session import Session
from agents.remote.job_commands import kill_command, poll_command, start_command
from agents.remote.job_script import UNFIT_STATUS, job_script
from agents.remote.transfer import get_command

StreamName = Literal["out", "err"]
State = Literal["running", "exited", "dead", "absent"]
OnOutput = Callable[[StreamName, int, bytes], Awaitable[None]]
"""Gets the stream, the offset of the first byte, and the bytes."""

_STATES: tuple[State, ...] = ("running", "exited", "dead", "absent")


@dataclass(frozen=True)
class Started:
    """A job that runs or ran. `already` = this call did not start it. `pid` is the command's own process, None when it
    never came to be; `start_ticks` its start in clock ticks since boot (field 22 of /proc/PID/stat)."""

    already: bool
    pid: int | None
    start_ticks: int | None
    boot_id: str | None


@dataclass(frozen=True)
class JobStatus:
    """What the host knows of a job.

    exited: the command ended; `exit_status` as a shell tells it, None = Unknown (the record is damaged).
    dead: it is gone and nobody recorded how (reboot, supervisor killed). absent: never started here.
    `truncated`: it wrote more than was kept (the cap, or a full disk); the sizes are of what is kept.
    The SHA-256 of each output is of what was kept when the command ended: whoever has fetched it all proves so with it.
    None before that, on a host without sha256sum, and when a process that was left behind has written since.
    """

    state: State
    exit_status: int | None = None
    pid: int | None = None
    start_ticks: int | None = None
    boot_id: str | None = None
    out_bytes: int = 0
    err_bytes: int = 0
    truncated: bool = False
    out_sha256: str | None = None
    err_sha256: str | None = None


@dataclass(frozen=True)
class _Poll:
    status: JobStatus
    out: bytes = b""
    err: bytes = b""


@dataclass(frozen=True)
class Job:
    """One detached command on a host, known by its directory there (absolute; its parents are made).

    `privileged` jobs run as root, and so must everything that looks at them. Changes go through `session.mutate`, so
    with a `FencedSession` only the newest holder of the host starts and ends jobs.
    """

    session: Session
    directory: str
    privileged: bool = False

    async def start(
        self,
        command: Command,
        *,
        cookie: str,
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limits: Mapping[str, int] | None = None,
        cpus: str = "",
        max_output_bytes: int = 64 << 20,
    ) -> Started:
        """Start `command` unless it was started before; one round trip. Its time is not bounded by `timeout_s`.

        `cookie` (16 to 128 of A-Za-z0-9_-) marks every process of the job. `environment` comes on top of the login's.
        `limits` sets soft and hard limit. `cwd` None is the home directory. Raises CommandError, with nothing started,
        when a limit, the affinity or the directory cannot be had, and also when the connection ended before the
        answer: then it may have been started, and starting again is safe. ValueError: a command with
        standard input, or a privileged one for a Job that is not.
        """
        if command.stdin:
            raise ValueError("a job takes no standard input")
        if command.privileged and not self.privileged:
            raise ValueError("a privileged command needs a privileged Job")
        text = job_script(command.argv, environment=environment or {}, cwd=cwd, limits=limits or {}, cpus=cpus)
        launch = start_command(self.directory, text, cookie=cookie, max_output_bytes=max_output_bytes)
        result = await self.session.mutate(self._as_user(launch))
        result.check(f"Starting a job on {self.session.host}", by_author=result.exit_status == UNFIT_STATUS)
        found = re.fullmatch(r"(started|already)(?: (\d+) (\d+) (\S+))?\s*", result.text)
        if not found:
            raise CommandError(
                f"Starting a job on {self.session.host} gave an answer that makes no sense: {result.text[:200]!r}"
            )
        word, pid, ticks, boot_id = found.groups()
        return Started(word == "already", _number(pid), _number(ticks), boot_id)

    async def status(self) -> JobStatus:
        """The present state, by identity (pid, start, boot), never by the age of a file."""
        return (await self._poll(0, 0, 0)).status

    async def read(self, stream: StreamName, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Output from `offset` (from 0); empty when there is no more yet."""
        command = self._as_user(get_command(f"{self.directory}/{stream}", offset=offset, max_bytes=max_bytes))
        result = await self.session.run(command, max_output_bytes=max_bytes)
        return result.check(f"Reading {stream} of a job on {self.session.host}").stdout

    async def follow(
        self,
        on_output: OnOutput,
        *,
        interval_s: float,
        deadline_s: float,
        should_stop: Callable[[], bool] = lambda: False,
        out_offset: int = 0,
        err_offset: int = 0,
        max_bytes: int = 1 << 18,
    ) -> JobStatus:
        """Hand on output as it comes until the job is over, `deadline_s` seconds passed or `should_stop` says so.

        Every byte is handed on once and in order before a final status returns; a status of "running" means that it was
        the deadline or `should_stop`. One round trip per `interval_s`. Offsets let another session go on from there.
        """
        end_s = time.monotonic() + deadline_s
        while True:
            poll = await self._poll(out_offset, err_offset, max_bytes)
            if poll.out:
                await on_output("out", out_offset, poll.out)
                out_offset += len(poll.out)
            if poll.err:
                await on_output("err", err_offset, poll.err)
                err_offset += len(poll.err)
            status = poll.status
            caught_up = out_offset >= status.out_bytes and err_offset >= status.err_bytes
            if should_stop() or time.monotonic() >= end_s or (caught_up and status.state != "running"):
                return status
            if caught_up:
                await asyncio.sleep(min(interval_s, max(0.0, end_s - time.monotonic())))

    async def kill(self, grace_s: int = 5, *, cookie: str = "") -> tuple[str, ...]:
        """End every process of the job: TERM, `grace_s`, KILL. Returns "pid name" of what is left, () when nothing is.

        Finds them by session and by cookie, so also what called setsid or was left behind; with the `cookie` of its
        start also when the job's directory is gone. Safe to call again.
        """
        result = await self._change(kill_command(self.directory, grace_s, cookie), "Ending a job")
        return tuple(result.text.splitlines())

    async def _poll(self, out_offset: int, err_offset: int, max_bytes: int) -> _Poll:
        command = poll_command(self.directory, out_offset=out_offset, err_offset=err_offset, max_bytes=max_bytes)
        result = await self.session.run(self._as_user(command), max_output_bytes=2 * max_bytes + 4096)
        return _parse_poll(result.check(f"Looking at a job on {self.session.host}").stdout)

    async def _change(self, command: Command, what: str) -> CommandResult:
        return (await self.session.mutate(self._as_user(command))).check(f"{what} on {self.session.host}")

    def _as_user(self, command: Command) -> Command:
        return replace(command, privileged=self.privileged)


def _parse_poll(output: bytes) -> _Poll:
    line, _, rest = output.partition(b"\n")
    words = line.decode("ascii", "replace").split()
    if words == ["absent"]:
        return _Poll(JobStatus("absent"))
    state = next((s for s in _STATES if words and s == words[0]), None)
    if state is None or len(words) != 14:
        raise CommandError("A job's state on the host could not be read.")
    rc, pid, ticks, boot_id, out_bytes, err_bytes, more, *sums, n_out, n_err = words[1:]
    ended = state == "exited"
    status = JobStatus(
        state,
        exit_status=int(rc) if ended and re.fullmatch(r"\d{1,3}", rc) and int(rc) <= 255 else None,
        pid=_number(pid) or None,
        start_ticks=_number(ticks) or None,
        boot_id=None if boot_id == "-" else boot_id,
        out_bytes=int(out_bytes),
        err_bytes=int(err_bytes),
        truncated=more == "yes",
        out_sha256=_sum(sums[0], sums[1], int(out_bytes)) if ended else None,
        err_sha256=_sum(sums[2], sums[3], int(err_bytes)) if ended else None,
    )
    out, err = rest[: int(n_out)], rest[int(n_out) :]
    if len(out) + len(err) != int(n_out) + int(n_err):
        raise CommandError("The output of a job did not arrive whole.")
    return _Poll(status, out, err)


def _sum(size: str, digest: str, size_now_bytes: int) -> str | None:
    """The recorded checksum. An output that has shrunk keeps its own, so that the loss shows."""
    summed_bytes = _number(size)
    known = summed_bytes is not None and size_now_bytes <= summed_bytes and re.fullmatch(r"[0-9a-f]{64}", digest)
    return digest if known else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
