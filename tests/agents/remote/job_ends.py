"""What the tests of jobs share: one job's output, its directory on this machine, and a cookie of their own."""

from __future__ import annotations

import secrets
from pathlib import Path

from agents.remote.jobs import Job, JobStatus, StreamName
from tests.sshd import eventually

COOKIE = secrets.token_hex()  # tests that run beside these must not end their processes


def folder(job: Job) -> Path:
    return Path(job.directory)


async def end(job: Job, *, deadline_s: float = 600.0) -> tuple[JobStatus, bytes, bytes]:
    """The last state of a job and all of its output."""
    got: dict[str, bytes] = {"out": b"", "err": b""}

    async def keep(stream: StreamName, offset: int, data: bytes) -> None:
        assert offset == len(got[stream])
        got[stream] += data

    status = await job.follow(keep, interval_s=0.02, deadline_s=deadline_s)
    return status, got["out"], got["err"]


async def first_line(job: Job) -> str:
    """What the job printed first, as soon as it is there."""
    await eventually(lambda: b"\n" in (folder(job) / "out").read_bytes())
    return (folder(job) / "out").read_text().splitlines()[0]
