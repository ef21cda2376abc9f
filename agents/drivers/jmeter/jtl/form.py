"""How a result file is written: the columns that are read; delimiter and time stamps, found out from the beginning."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from agents.base.errors import ParseError

TIME, ELAPSED, LABEL, CODE = "timeStamp", "elapsed", "label", "responseCode"
MESSAGE, THREAD, SUCCESS = "responseMessage", "threadName", "success"
BYTES, SENT, ACTIVE = "bytes", "sentBytes", "allThreads"

KINDS: dict[str, type[pl.DataType]] = {
    TIME: pl.Int64,  # the start, in milliseconds since 1970
    ELAPSED: pl.Int64,
    LABEL: pl.String,
    CODE: pl.String,
    MESSAGE: pl.String,
    THREAD: pl.String,
    SUCCESS: pl.Boolean,
    BYTES: pl.Int64,
    SENT: pl.Int64,
    ACTIVE: pl.Int64,
}
NEEDED = (TIME, ELAPSED, LABEL, SUCCESS)
SUMMED = (BYTES, SENT)

TRANSACTION = "Number of samples in transaction"
"""How the message of a transaction controller begins; its row spans requests that have rows of their own."""

_DEFAULT = [
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
    "failureMessage",
    "bytes",
    "sentBytes",
    "grpThreads",
    "allThreads",
    "URL",
    "Latency",
    "IdleTime",
    "Connect",
]
_KNOWN = (
    _DEFAULT,
    [name for name in _DEFAULT if name != "sentBytes"],  # JMeter 3.0
    [name for name in _DEFAULT if name not in ("sentBytes", "Connect")],  # JMeter 2.13
)
_FORMATS = {
    r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d[.,]\d{1,6}": "%Y/%m/%d %H:%M:%S.%f",
    r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d": "%Y/%m/%d %H:%M:%S",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{1,6}": "%Y-%m-%d %H:%M:%S.%f",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d": "%Y-%m-%d %H:%M:%S",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{1,6}": "%Y-%m-%dT%H:%M:%S.%f",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d": "%Y-%m-%dT%H:%M:%S",
    r"\d\d?\.\d\d?\.\d{4} \d\d:\d\d:\d\d[.,]\d{1,6}": "%d.%m.%Y %H:%M:%S.%f",
    r"\d\d?\.\d\d?\.\d{4} \d\d:\d\d:\d\d": "%d.%m.%Y %H:%M:%S",
    r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d": "%m/%d/%y %H:%M:%S",  # JMeter's own order of guesses
}
MAX_TIME_MS = 4_102_444_800_000  # the year 2100


@dataclass(frozen=True)
class Stamps:
    """Time stamps as numbers in units of `ms` milliseconds, or as text in `text_format` without a time zone."""

    ms: int = 1
    text_format: str = ""

    def read(self, text: str) -> int:
        """Milliseconds since 1970; text without a zone is taken for UTC. ValueError when it is none."""
        if self.text_format:
            at = datetime.strptime(text.replace(",", "."), self.text_format).replace(tzinfo=UTC)
            found = round(at.timestamp() * 1000)
        elif text.isascii() and text.isdigit() and len(text) < 20:
            found = int(text) * self.ms
        else:
            raise ValueError(text)
        if not 0 <= found < MAX_TIME_MS:
            raise ValueError(text)
        return found


@dataclass(frozen=True)
class JtlForm:
    """`header` is the header's line without its end, empty when the file has none; `start` matches where rows begin."""

    delimiter: str
    columns: tuple[str, ...]
    header: bytes
    stamps: Stamps
    start: re.Pattern[bytes]

    @property
    def notes(self) -> list[str]:
        notes = []
        if self.stamps.text_format:
            notes.append("its time stamps name no time zone; they are taken for UTC")
        if self.stamps.ms == 1000 or (self.stamps.text_format and "%f" not in self.stamps.text_format):
            notes.append("its time stamps are whole seconds, so duration and throughput are coarse")
        return notes


def form_of(head: bytes) -> JtlForm:
    """The form of a file that begins so (a byte order mark taken off). ParseError says what it should be."""
    lines = [line.rstrip(b"\r") for line in head.split(b"\n")[:50]]
    first = next((line for line in lines if line.strip()), b"")
    delimiter = _delimiter(first.decode("utf-8", "replace"))
    cells = _cells(first.decode("utf-8", "replace"), delimiter)
    has_header = ELAPSED in cells or TIME in cells
    if has_header:
        columns = cells
        rows = [line for line in lines[lines.index(first) + 1 :] if line.strip()]
    else:
        columns = _guess(cells)
        rows = [first]
    if missing := [name for name in NEEDED if name not in columns]:
        raise ParseError(
            f"the results have no column {', '.join(missing)}",
            line=1,
            hint="Save them with the defaults of jmeter.save.saveservice.*.",
        )
    if columns[0] != TIME:
        raise ParseError("the first column is not timeStamp, as it is in JMeter's files", line=1)
    cell = _cells(rows[0].decode("utf-8", "replace"), delimiter)[0] if rows else "1"
    stamps, pattern = _stamps(cell)
    start = re.compile(rb'"?' + pattern + rb'"?' + re.escape(delimiter.encode()), re.ASCII)
    return JtlForm(delimiter, tuple(_unique(columns)), first if has_header else b"", stamps, start)


def _delimiter(line: str) -> str:
    """What stands between the first two cells: in front of the second column's name, or behind the time stamp."""
    match = re.match(r'"?timeStamp"?([^\w"])', line, re.ASCII) or re.match(r'"?\d{9,13}"?([^\w"])', line, re.ASCII)
    for pattern in _FORMATS:
        match = match or re.match(rf'"?{pattern}"?([^\w".])', line, re.ASCII)
    match = match or re.match(r'"?[A-Za-z]{1,40}"?([^\w"\s]|\t)', line, re.ASCII)
    if match is None or not match[1].isascii() or match[1] in "\r\n":
        raise ParseError(
            "this is no JMeter result file: it begins neither with a header nor with a time stamp",
            line=1,
            hint="Give the file that JMeter wrote with -l, as CSV or XML.",
        )
    return match[1]


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise ParseError(f"the first line cannot be read: {error}", line=1) from error


def _guess(cells: list[str]) -> list[str]:
    """The columns of a file without a header: JMeter's defaults of some version, when the cells fit them."""
    for columns in _KNOWN:
        if len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if row[ELAPSED].isdigit() and row[SUCCESS].lower() in ("true", "false") and row[LABEL]:
                return columns
    raise ParseError(
        "the file has no header, and its columns are not JMeter's default ones",
        line=1,
        hint="Save it with jmeter.save.saveservice.print_field_names=true.",
    )


def _stamps(cell: str) -> tuple[Stamps, bytes]:
    """What the time stamps are, and the pattern of one."""
    if re.fullmatch(r"\d{11,13}", cell, re.ASCII):
        return Stamps(), rb"\d{11,13}"
    if re.fullmatch(r"\d{9,10}", cell, re.ASCII):
        return Stamps(ms=1000), rb"\d{9,10}"
    for pattern, text_format in _FORMATS.items():
        if re.fullmatch(pattern, cell, re.ASCII):
            return Stamps(text_format=text_format), pattern.encode()
    if cell == "1":  # no row at all
        return Stamps(), rb"\d{11,13}"
    raise ParseError(
        f"'{cell[:60]}' is not a time stamp that is known",
        line=2,
        hint="Save the results with jmeter.save.saveservice.timestamp_format=ms.",
    )


def _unique(columns: list[str]) -> list[str]:
    """The names with a number behind those that came before: user variables may repeat one."""
    seen: dict[str, int] = {}
    found = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found
