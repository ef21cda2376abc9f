"""A long CSV as an answer that goes out while it is read."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse


class CsvResponse(StreamingHttpResponse):
    """Lines of CSV as a download."""

    def __init__(self, lines: Iterator[str], *, filename: str) -> None:
        super().__init__(lines, content_type="text/csv; charset=utf-8")
        self["Content-Disposition"] = f'attachment; filename="{filename}"'
        self["X-Content-Type-Options"] = "nosniff"
