"""A long CSV as an answer that goes out while it is read, under the asynchronous server too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

_LINES = 500


class CsvResponse(StreamingHttpResponse):
    """Lines of CSV as a download. Django itself would read all of them before it sends the first."""

    def __init__(self, lines: Iterator[str], *, filename: str) -> None:
        super().__init__(lines, content_type="text/csv; charset=utf-8")
        self["Content-Disposition"] = f'attachment; filename="{filename}"'
        self["X-Content-Type-Options"] = "nosniff"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        lines = iter(self)

        def some() -> bytes:
            return b"".join(islice(lines, _LINES))

        while part := await sync_to_async(some)():
            yield part
