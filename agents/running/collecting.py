"""The result file of a load tool: fetched, read away from the event loop, and kept compressed."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.base.errors import KeepError
from agents.base.session import Session
from agents.drivers.base.driver import Driver
from agents.events import AnyEvent, Logged, ResultFile
from agents.remote.fetching import compress, fetch
from agents.results.report import LoadReport

MAX_FILE_BYTES = 16 << 20
SAY_EVERY_S = 5.0

KeepFile = Callable[[str, bytes | Path, str], Awaitable[None]]
"""Keeps a file of the run: name, content or the local file that has it, media type; the same name again replaces it.

KeepError when there is no place for it.
"""


class _Stopped(Exception):
    pass


async def collect_results(
    session: Session,
    directory: str,
    tool: Driver,
    printed: LoadReport,
    name: str,
    *,
    source: str,
    emit: Callable[[AnyEvent], Awaitable[None]],
    check: Callable[[], None],
    keep: KeepFile | None,
    max_file_bytes: int,
) -> tuple[LoadReport, ResultFile]:
    """The report in the tool's result file, and what became of the file. ParseError when it is no report.

    Nothing is stored before all has been read, so whoever does it again begins anew and counts nothing twice.
    """
    say = _Saying(emit, check, source)
    with tempfile.TemporaryDirectory(prefix="benchhub-results-") as folder:
        local = Path(folder) / "results"
        path = f"{directory}/{tool.result_file}"
        fetched = await fetch(
            session,
            path,
            local,
            max_bytes=tool.max_result_bytes,
            on_progress=lambda done, size: say.progress(f"{tool.result_file} fetched", done, size),
        )
        report = await _read(tool, local, printed, say)
        packed = Path(folder) / "results.gz"
        kept, why = "", f"compressed it has more than {max_file_bytes >> 20} MB"
        if keep is not None and await asyncio.to_thread(compress, local, packed, max_bytes=max_file_bytes):
            try:
                await keep(f"{name}.gz", packed, "application/gzip")
                kept = f"{name}.gz"
            except KeepError as error:  # its figures are read already
                why = error.message
    what = f"kept as {kept}" if kept else f"not kept: {why}"
    size_mb = fetched.size_bytes / 1e6
    await emit(Logged(source, (f"{tool.result_file}: {size_mb:,.1f} MB, sha256 {fetched.sha256}, {what}",)))
    return report, ResultFile(tool.result_file, fetched.size_bytes, fetched.sha256, kept)


class _Saying:
    """Progress as log lines, a few seconds apart."""

    def __init__(self, emit: Callable[[AnyEvent], Awaitable[None]], check: Callable[[], None], source: str) -> None:
        self._source = source
        self._emit = emit
        self._check = check
        self._next_s = time.monotonic() + SAY_EVERY_S

    async def progress(self, what: str, done: int, size: int) -> None:
        self._check()
        if time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + SAY_EVERY_S
            await self._emit(Logged(self._source, (f"{what}: {done / 1e6:,.0f} of {size / 1e6:,.0f} MB",)))


async def _read(tool: Driver, path: Path, printed: LoadReport, say: _Saying) -> LoadReport:
    """Read the file in a thread; the loop stays free, and the end of the run ends the reading too."""
    at, stop = [0, 0], threading.Event()

    def on_progress(done: int, size: int) -> None:
        at[:] = done, size
        if stop.is_set():
            raise _Stopped

    work = asyncio.create_task(asyncio.to_thread(tool.parse_results, path, printed, on_progress))
    try:
        while not work.done():
            await asyncio.wait({work}, timeout=0.25)
            await say.progress(f"{tool.result_file} read", *at)
        return work.result()
    finally:
        stop.set()
        await asyncio.gather(work, return_exceptions=True)
