"""A long CSV as an answer: made first, then sent, so that a slow reader holds no connection to the database."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterable
from tempfile import SpooledTemporaryFile
from typing import IO

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse

from experiments.registry.errors import Busy

AT_ONCE = 4
"""Fewer than a web process has connections to the database: downloads must not take them all."""
PART_BYTES = 64 * 1024
_places = threading.BoundedSemaphore(AT_ONCE)


class CsvResponse(StreamingHttpResponse):
    """Lines of CSV as a download. Busy while `AT_ONCE` others are being made."""

    def __init__(self, lines: Iterable[str], *, filename: str) -> None:
        self._whole = _made(lines)
        super().__init__(self._whole, content_type="text/csv; charset=utf-8")
        self["Content-Disposition"] = f'attachment; filename="{filename}"'
        self["X-Content-Type-Options"] = "nosniff"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Django itself would keep the request's connection, and read the whole file into memory.
        await sync_to_async(close_old_connections)()
        while part := await sync_to_async(self._whole.read)(PART_BYTES):
            yield part


def _made(lines: Iterable[str]) -> IO[bytes]:
    if not _places.acquire(blocking=False):
        raise Busy(f"{AT_ONCE} long downloads are being made already; ask again in a few seconds.")
    try:
        whole = SpooledTemporaryFile(max_size=1024 * 1024)  # noqa: SIM115 - the answer closes it
        whole.writelines(line.encode() for line in lines)
        whole.seek(0)
        return whole
    finally:
        _places.release()
