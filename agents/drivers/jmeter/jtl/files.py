"""JMeter's result files (JTL), CSV or XML, of any size."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.csv_file import FORMAT as CSV
from agents.drivers.jmeter.jtl.csv_file import read_csv
from agents.drivers.jmeter.jtl.xml_file import FORMAT as XML
from agents.drivers.jmeter.jtl.xml_file import read_xml
from agents.results.report import LoadReport

__all__ = ["CSV", "XML", "read_jtl", "read_jtl_file", "read_jtl_text"]

OnProgress = Callable[[int, int], None]
"""Gets the bytes read and the bytes in all, some times per second; what it raises ends the reading."""


def read_jtl_file(path: Path, on_progress: OnProgress = lambda _done, _all: None) -> LoadReport:
    """The report of the results in a file; memory does not grow with its size. ParseError when they are none."""
    size_bytes = path.stat().st_size
    with path.open("rb") as source:
        return read_jtl(source, lambda done_bytes: on_progress(done_bytes, size_bytes))


def read_jtl_text(text: str) -> LoadReport:
    """The same as `read_jtl`, of a text. Raises ParseError."""
    return read_jtl(io.BytesIO(text.encode("utf-8", "replace")))


def read_jtl(source: BinaryIO, on_progress: Callable[[int], None] = lambda _done: None) -> LoadReport:
    """The report of the results in a seekable source, CSV or XML, whichever it is. Raises ParseError."""
    head = source.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    source.seek(0)
    if not head:
        raise ParseError("the file is empty", line=1)
    return read_xml(source, on_progress) if head.startswith(b"<") else read_csv(source, on_progress)
