"""A file that a load tool makes of its results when measuring is over, such as JMeter's HTML report."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agents.base.errors import CommandError, HostError, KeepError
from agents.drivers.base.driver import DerivedFile
from agents.remote.fetching import fetch
from agents.remote.jobs import Job
from agents.running.collecting import KeepFile

FIRST_LOOK_S, SELDOM_S = 0.2, 2.0
MAX_OUTPUT_BYTES = 1 << 18


async def make_byproduct(
    job: Job,
    wanted: DerivedFile,
    directory: str,
    cookie: str,
    name: str,
    *,
    check: Callable[[], None],
    keep: KeepFile,
    max_file_bytes: int,
) -> str:
    """Make the file in `directory`, fetch it and keep it as `name`; returns what became of it, in a sentence.

    A file that cannot be had is no failure of the run: it only repeats what the results say.
    """

    async def on_progress(_done: int, _size: int) -> None:
        check()

    await job.start(wanted.command, cookie=cookie, cwd=directory, max_output_bytes=MAX_OUTPUT_BYTES)
    end_s, pause_s = time.monotonic() + wanted.command.timeout_s, FIRST_LOOK_S
    while (status := await job.status()).state == "running":
        check()
        if time.monotonic() > end_s:
            await job.kill(cookie=cookie)
            return f"There is no {wanted.file}: it took more than {wanted.command.timeout_s:g} s."
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, SELDOM_S)
    if status.exit_status != 0:
        said = (await job.read("err", 0, 4000)).decode("utf-8", "replace").strip().splitlines()
        return f"There is no {wanted.file}: {said[-1][:300] if said else 'its command failed'}"
    try:
        with tempfile.TemporaryDirectory(prefix="benchhub-report-") as folder:
            local = Path(folder) / "file"
            path = f"{directory}/{wanted.file}"
            await fetch(job.session, path, local, max_bytes=max_file_bytes, on_progress=on_progress)
            await keep(name, local, wanted.media_type)
    except (CommandError, HostError, KeepError) as error:
        return f"{wanted.file} was not kept: {error.message}"
    return f"{wanted.file} is kept as {name}."
