"""CSV result files of any size: read in pieces that are counted on two threads, in bounded memory."""

from __future__ import annotations

import codecs
import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import (
    COLUMNS,
    ELAPSED,
    LABEL,
    MAX_TIME_MS,
    MESSAGE,
    NEEDED,
    THREAD,
    TIME,
    TRANSACTION,
    JtlForm,
    Stamps,
    form_of,
    kind_of,
)
from agents.drivers.jmeter.jtl.frames import pl
from agents.drivers.jmeter.jtl.lines import MAX_ELAPSED_MS, Trouble, read_lines
from agents.drivers.jmeter.jtl.nesting import Nesting
from agents.drivers.jmeter.jtl.pauses import SPLIT_IT
from agents.drivers.jmeter.jtl.tally import END, START, Part, Tally, count, part_of, tables
from agents.drivers.jmeter.jtl.totals import report
from agents.results.report import LoadReport

FORMAT = "jmeter-jtl-csv"
HEAD_BYTES = 1 << 16
PIECE_BYTES = 16 << 20
SLOW_BYTES = 1 << 18
WINDOW_BYTES = 1 << 13
CACHED_BYTES = 1 << 18
MAX_RECORD_BYTES = 64 << 20
THREADS = 2
_MISSING, _LONGEST = "missing", "longest"

OnProgress = Callable[[int], None]
"""Gets the number of bytes read so far; what it raises ends the reading."""


@dataclass(frozen=True)
class _Piece:
    """Whole records: these bytes of the source."""

    offset: int
    size: int


@dataclass(frozen=True)
class _Counted:
    """A piece that was counted at once (`part`), or has to be gone through slowly. `lines` are those that it spans."""

    piece: _Piece
    part: Part | None
    lines: int


def read_csv(source: BinaryIO, on_progress: OnProgress = lambda _bytes: None) -> LoadReport:
    """The report of the results in `source`, a file or bytes. ParseError when they are no results."""
    at = _Place(source)
    head = at.read(0, HEAD_BYTES)
    mark = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    form = form_of(head[mark:])
    begin = head.find(b"\n", head.index(form.header)) + 1 or len(head) if form.header else mark
    reader = _Reader(form, at, 1 + head.count(b"\n", 0, begin))
    try:
        for piece in _pieces(at, form, begin, at.size, PIECE_BYTES):
            reader.add(piece)
            on_progress(piece.offset + piece.size)
        return reader.report()
    finally:
        reader.close()


class _Place:
    """The bytes of a file (read from any thread) or of a text in memory."""

    def __init__(self, source: BinaryIO) -> None:
        self._bytes = source.getbuffer() if isinstance(source, io.BytesIO) else None
        self._file = -1 if self._bytes is not None else source.fileno()
        self.size = len(self._bytes) if self._bytes is not None else os.fstat(self._file).st_size

    def read(self, offset: int, size: int) -> bytes:
        """What there is of `size` bytes from `offset`."""
        if self._bytes is not None:
            return bytes(self._bytes[offset : offset + size])
        return os.pread(self._file, size, offset)


class _Reader:
    """Pieces go in, parts come out of the threads in the same order and are added up here."""

    def __init__(self, form: JtlForm, place: _Place, line: int) -> None:
        self._form = form
        self._place = place
        self._all_names = [name for name in COLUMNS if name in form.columns]
        self._names = [name for name in self._all_names if name != THREAD]
        self._tally = Tally()
        self._trouble = Trouble()
        self._nesting: Nesting | None = None
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="jtl")
        self._waiting: deque[Future[_Counted]] = deque()
        self._line = line

    def add(self, piece: _Piece) -> None:
        self._waiting.append(self._pool.submit(self._fast, piece))
        while len(self._waiting) > 2 * THREADS:
            self._take()

    def report(self) -> LoadReport:
        while self._waiting:
            self._take()
        return report(self._tally, FORMAT, [*self._form.notes, *self._notes()], self._whys())

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _take(self) -> None:
        counted = self._waiting.popleft().result()
        piece = counted.piece
        if counted.part is None and piece.size > SLOW_BYTES:  # only a little of it is gone through slowly
            for small in _pieces(self._place, self._form, piece.offset, piece.offset + piece.size, SLOW_BYTES):
                self._count(self._fast(small))
        else:
            self._count(counted)

    def _count(self, counted: _Counted) -> None:
        part = counted.part
        if part is None:
            rows = self._rows(counted.piece, slowly=True)
            nesting = self._nesting_of(rows[LABEL])
            part = count(nesting.marked(rows) if nesting else rows)
        elif nesting := self._nesting_of(part.groups[LABEL]):
            part = count(nesting.marked(self._rows(counted.piece)))
        self._line += counted.lines
        self._tally.add(part)

    def _nesting_of(self, labels: pl.Series) -> Nesting | None:
        """Once a label looks like one of parts, rows are looked at again, with their threads."""
        self._tally.see_labels(labels.unique().to_list())
        if parents := self._tally.parents():
            self._nesting = self._nesting or Nesting()
            self._nesting.parents = parents
        return self._nesting

    def _rows(self, piece: _Piece, *, slowly: bool = False) -> pl.DataFrame:
        data = self._place.read(piece.offset, piece.size)
        if slowly:
            return read_lines(data, self._form, self._all_names, self._line, self._trouble)
        return _rows(data, self._form, quoted=b'"' in data).select(self._all_names).collect()

    def _fast(self, piece: _Piece) -> _Counted:
        data = self._place.read(piece.offset, piece.size)
        quoted = b'"' in data
        torn = b"\r" in data and data.count(b"\r") != data.count(b"\r\n")  # which the slow way does not take for text
        part = None if torn else _part(data, self._form, self._names, quoted=quoted)
        lines = data.count(b"\n") if part is None or quoted else part.rows
        if part is None or (part.rows != lines and part.rows != _records(data, self._form)):
            return _Counted(piece, None, lines)
        return _Counted(piece, part, lines)

    def _notes(self) -> Iterator[str]:
        torn, last = self._trouble.torn, self._line
        if torn and torn[-1] >= last - 1:
            yield f"the last line ({torn[-1]}) is torn and was left out: JMeter was ended while it wrote"
            torn = torn[:-1]
        if torn:
            some = ", ".join(map(str, torn[:5])) + (", ..." if len(torn) > 5 else "")
            yield f"{len(torn)} lines are no whole results and were left out: {some}"
        if self._trouble.localized:
            yield "it has numbers with separators between groups of three digits, as spreadsheets write them"

    def _whys(self) -> Sequence[str]:
        if not (headers := self._trouble.headers):
            return []
        lines = ", ".join(map(str, headers[:5]))
        return [f"the file holds {len(headers) + 1} runs: a header stands again in line {lines}; {SPLIT_IT}"]


def _pieces(place: _Place, form: JtlForm, begin: int, end: int, size: int) -> Iterator[_Piece]:
    """Whole records in pieces of about `size` bytes; only a little is read around each cut."""
    offset = begin
    while offset < end:
        upto = offset + size
        cut: int | None = None
        while upto < end and (cut := _last_start(place, form, offset, upto)) is None:
            upto += size
            if upto - offset > MAX_RECORD_BYTES:
                raise ParseError(f"no result begins in {MAX_RECORD_BYTES >> 20} MB after byte {offset}")
        yield _Piece(offset, (cut or end) - offset)
        offset = cut or end


def _last_start(place: _Place, form: JtlForm, offset: int, end: int) -> int | None:
    """Where the last record before `end` begins; None when none does after `offset`."""
    size = WINDOW_BYTES
    while True:
        begin = max(offset, end - size)
        data = place.read(begin, end - begin)
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            if form.start.match(data, at + 1):
                return begin + at + 1
        if begin == offset:
            return None
        size *= 8


def _rows(data: bytes, form: JtlForm, *, quoted: bool) -> pl.LazyFrame:
    """The rows, to be taken apart once for all that is collected from them together."""
    schema: dict[str, type[pl.DataType]] = {
        name: pl.String if name == TIME and form.stamps.text_format else kind_of(name) for name in form.columns
    }
    rows = pl.scan_csv(
        data,
        has_header=False,
        schema=schema,
        separator=form.delimiter,
        quote_char='"' if quoted else None,
        empty_string_is_null=False,
        glob=False,
    )
    if form.stamps != Stamps():
        rows = rows.with_columns(_milliseconds(form.stamps))
    return rows.collect().lazy() if quoted else rows.cache()  # with all columns polars says when there are too many


def _part(data: bytes, form: JtlForm, names: list[str], *, quoted: bool) -> Part | None:
    """The rows counted; None when they are not whole records with every needed value. `quoted`: there are quotes in it.

    Without quotes they never become a table of rows: they are counted while they are taken apart.
    """
    if data.isspace() or not data.endswith(b"\n") or (quoted and data.count(b'"') % 2):
        return None
    try:
        rows = _rows(data, form, quoted=quoted)
        *counted, checks = pl.collect_all([*tables(rows, names), rows.select(_checks(form, names))])
        if not _are_sound(checks, counted[0]):
            return None
        part = part_of(counted)
        if checks[_LONGEST].item() >= len(TRANSACTION):
            part = count(rows.select(names).collect())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):  # it panics at some broken quotes
        return None
    if not quoted and _delimiters(data, form) != part.rows * (len(form.columns) - 1):  # polars passes over too many
        return None
    return part


def _checks(form: JtlForm, names: list[str]) -> list[pl.Expr]:
    """How many needed values are missing, also where a row has too few cells, and the bytes of the longest message."""
    missing = [pl.col(name).null_count() for name in dict.fromkeys((*NEEDED, form.columns[-1]))]
    longest = pl.col(MESSAGE).str.len_bytes().max().fill_null(0) if MESSAGE in names else pl.lit(0)
    return [pl.sum_horizontal(missing).alias(_MISSING), longest.alias(_LONGEST)]


def _are_sound(checks: pl.DataFrame, groups: pl.DataFrame) -> bool:
    """Whether there are rows, with all their values, and elapsed times and times are possible ones."""
    if not groups.height or checks[_MISSING].item():
        return False
    low, high, first, last = groups.select(
        pl.col(ELAPSED).min(),
        pl.col(ELAPSED).max().alias("high"),
        pl.col(START).min(),
        (pl.col(END) - pl.col(ELAPSED)).max().alias(END),
    ).row(0)
    return bool(low >= -MAX_ELAPSED_MS and high <= MAX_ELAPSED_MS and first >= 0 and last < MAX_TIME_MS)


def _delimiters(data: bytes, form: JtlForm) -> int:
    every = np.frombuffer(data, np.uint8)
    parts = (every[at : at + CACHED_BYTES] for at in range(0, len(data), CACHED_BYTES))
    return sum(int(np.count_nonzero(part == ord(form.delimiter))) for part in parts)


def _milliseconds(stamps: Stamps) -> pl.Expr:
    if not stamps.text_format:
        return pl.col(TIME) * stamps.ms
    text = pl.col(TIME).str.replace(",", ".", literal=True)
    text_format = stamps.text_format.replace(".%f", "%.f")
    return text.str.to_datetime(text_format, time_unit="ms", strict=False).dt.epoch("ms").alias(TIME)


def _records(data: bytes, form: JtlForm) -> int:
    """How many lines look like the beginning of a record."""
    found = at = 0
    while at < len(data):
        found += form.start.match(data, at) is not None
        at = (data.find(b"\n", at) + 1) or len(data)
    return found
