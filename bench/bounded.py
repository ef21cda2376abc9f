"""Measures how much the controller grows while a load tool prints 5 GB, and one line of 1 GB.

A real job over a real sshd, twice each: looked at until it is over and then read as the load phases do it, and followed
while it prints. Prints Markdown; the exit status is 1 when the process grew by 64 MB or more, or when what was fetched
is not what the host kept.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agents.base.command import Command, script
from agents.remote.jobs import Job, JobStatus, StreamName
from agents.remote.ssh import connect
from agents.running.tool_job import MAX_OUTPUT_BYTES
from bench.memory import memory_bytes, reset_peak_bytes
from bench.sshd import Hosts, running_hosts

LIMIT_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20
FOLLOWED_BYTES = 64 << 20
DEADLINE_S = 900.0

Reader = Callable[[Job, "hashlib._Hash"], Awaitable[JobStatus]]


@dataclass(frozen=True)
class Found:
    """One case: what the tool printed, what was kept and fetched, by how much this process grew meanwhile."""

    name: str
    printed_bytes: int
    kept_bytes: int
    grown_bytes: int
    took_s: float
    whole: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0, help="how much the tool prints")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-bounded-") as place, running_hosts(Path(place), 1) as hosts:
        found = asyncio.run(_measure(hosts, Path(place), int(given.gigabytes * 1e9)))
    print("\n".join(table(found)))
    if any(case.grown_bytes >= LIMIT_BYTES or not case.whole for case in found):
        raise SystemExit(1)


def table(found: list[Found]) -> list[str]:
    """The Markdown."""
    lines = ["| output | printed, MB | kept and fetched, MB | controller grew by, MB | s |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for case in found:
        fetched = f"{case.kept_bytes / 1e6:,.0f}" if case.whole else "not whole"
        grown = f"{case.grown_bytes / 1e6:.1f}"
        lines.append(f"| {case.name} | {case.printed_bytes / 1e6:,.0f} | {fetched} | {grown} | {case.took_s:.0f} |")
    return [*lines, "", f"Limit: {LIMIT_BYTES >> 20} MB more at the peak than before."]


async def _measure(hosts: Hosts, folder: Path, printed_bytes: int) -> list[Found]:
    lines = script('yes "$(printf %099d 7)" | head -c "$1"', str(printed_bytes))
    line = script("head -c 1000000000 /dev/zero | tr '\\0' x")
    session = await connect(hosts.addresses[0], hosts.private_key)
    try:
        await _case("", script("echo ready"), 6, Job(session, f"{folder}/jobs/first"), MAX_OUTPUT_BYTES, _look_and_read)
        found = []
        for what, command, size_bytes in (("lines", lines, printed_bytes), ("one line", line, 1_000_000_000)):
            for how, cap_bytes, read in (
                ("read at the end", MAX_OUTPUT_BYTES, _look_and_read),
                ("followed", FOLLOWED_BYTES, _follow),
            ):
                job = Job(session, f"{folder}/jobs/{secrets.token_hex(4)}")
                found.append(await _case(f"{what}, {how}", command, size_bytes, job, cap_bytes, read))
                await session.run(Command(("rm", "-rf", "--", job.directory)))
        return found
    finally:
        await session.close()


async def _case(name: str, command: Command, printed_bytes: int, job: Job, cap_bytes: int, read: Reader) -> Found:
    before_bytes = reset_peak_bytes()
    started_s = time.monotonic()
    await job.start(command, cookie=secrets.token_hex(), max_output_bytes=cap_bytes)
    digest = hashlib.sha256()
    try:
        status = await read(job, digest)
    finally:
        await job.kill()
    expected_bytes = min(printed_bytes, cap_bytes)
    whole = (
        status.exit_status == 0
        and status.out_bytes == expected_bytes
        and status.truncated is (printed_bytes > cap_bytes)
        and digest.hexdigest() == status.out_sha256
    )
    grown_bytes = memory_bytes("VmHWM") - before_bytes
    if name:
        print(f"{name}: {status.state}, grew by {grown_bytes} bytes", file=sys.stderr)
    return Found(name, printed_bytes, status.out_bytes, grown_bytes, time.monotonic() - started_s, whole)


async def _look_and_read(job: Job, digest: hashlib._Hash) -> JobStatus:
    """Look at it until it is over, then fetch what is kept in parts and join them: so do the load phases."""
    while True:
        status = await job.status()
        if status.state != "running":
            break
        await asyncio.sleep(0.2)
    parts = []
    offset = 0
    while chunk := await job.read("out", offset, CHUNK_BYTES):
        parts.append(chunk)
        offset += len(chunk)
    digest.update(b"".join(parts))
    return status


async def _follow(job: Job, digest: hashlib._Hash) -> JobStatus:
    async def keep(stream: StreamName, offset: int, data: bytes) -> None:
        if stream == "out":
            digest.update(data)

    return await job.follow(keep, interval_s=0.2, deadline_s=DEADLINE_S, max_bytes=CHUNK_BYTES)


if __name__ == "__main__":
    main()
