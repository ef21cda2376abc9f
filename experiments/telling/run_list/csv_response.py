"""A long file as an answer: made first, then sent, so that a slow reader holds no connection to the database."""

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


class WholeFile(StreamingHttpResponse):
    """A file that was made, as a download; it is closed with the answer."""

    def __init__(self, whole: IO[bytes], *, content_type: str, filename: str) -> None:
        self._whole = whole
        super().__init__(self._whole, content_type=content_type)
        self["Content-Disposition"] = f'attachment; filename="{filename}"'
        self["X-Content-Type-Options"] = "nosniff"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Django itself would keep the request's connection, and read the whole file into memory.
        await sync_to_async(close_old_connections)()
        while part := await sync_to_async(self._whole.read)(PART_BYTES):
            yield part


class CsvResponse(WholeFile):
    """Lines of CSV as a download. Busy while `AT_ONCE` others are being made."""

    def __init__(self, lines: Iterable[str], *, filename: str) -> None:
        super().__init__(_made(lines), content_type="text/csv; charset=utf-8", filename=filename)


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
