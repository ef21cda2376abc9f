"""The slow way through a piece of a CSV result file, record by record: says exactly what is wrong, and where."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import COLUMNS, NEEDED, SUCCESS, TIME, JtlForm, kind_of
from agents.drivers.jmeter.jtl.frames import pl

MAX_ELAPSED_MS = 10 * 24 * 3600 * 1000
_GROUPED = re.compile(r"-?\d{1,3}(?:([.,'  ’])\d{3})(?:\1\d{3})*")
_PLAIN = re.compile(r"-?\d{1,15}", re.ASCII)
_MAX_RECORD_LINES = 2000
_MAX_GLUED_BYTES, _MAX_GLUED = 1 << 16, 20
csv.field_size_limit(64 << 20)  # as long as a record may be; with the usual 128 kB it refused fields that polars takes


Row = dict[str, object]


@dataclass
class Trouble:
    """What was met on the way: line numbers count from 1."""

    torn: list[int] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)
    localized: int = 0


def read_lines(data: bytes, form: JtlForm, names: list[str], first_line: int, trouble: Trouble) -> pl.DataFrame:
    """The rows that can be read; the others go to `trouble`. ParseError when another header changes the columns."""
    found: dict[str, list[object]] = {name: [] for name in names}
    places = {name: form.columns.index(name) for name in names}
    for line, record in _records(data, form, first_line, trouble):
        row = _row(record, form, places, trouble)
        if row is None:
            trouble.torn.append(line)
            row = _behind_torn(record, form, places, trouble)
        for name, value in (row or {}).items():
            found[name].append(value)
    return pl.DataFrame(found, schema={name: kind_of(name) for name in names})


def _records(data: bytes, form: JtlForm, line: int, trouble: Trouble) -> Iterator[tuple[int, bytes]]:
    """Records with the number of their first line; a quoted field may hold line breaks, but not the next record."""
    lines = data.split(b"\n")
    at = 0
    while at < len(lines):
        first, record = at, lines[at]
        at += 1
        while record.count(b'"') % 2 and at < len(lines) and at - first < _MAX_RECORD_LINES:
            if form.start.match(lines[at]) or _is_header(lines[at], form):
                break
            record += b"\n" + lines[at]
            at += 1
        record = record.rstrip(b"\r\n")
        if form.header and (place := record.find(form.header)) >= 0:
            trouble.headers.append(line + first)
            if place:
                trouble.torn.append(line + first)
            continue
        if _is_header(record, form):
            raise ParseError(
                f"other columns begin in line {line + first}: two result files were joined",
                line=line + first,
                hint="Give them one by one.",
            )
        if record.strip():
            yield line + first, record


def _is_header(line: bytes, form: JtlForm) -> bool:
    return line.startswith((b"timeStamp", b'"timeStamp')) and b"elapsed" in line[:40]


def _row(record: bytes, form: JtlForm, places: dict[str, int], trouble: Trouble) -> Row | None:
    """The values; None when there are too few or too many, or a needed one is none."""
    try:
        cells = next(csv.reader([record.decode("utf-8", "replace")], delimiter=form.delimiter), [])
        return _values(cells, places, form, trouble) if len(cells) == len(form.columns) else None
    except (ValueError, csv.Error):
        return None


def _behind_torn(record: bytes, form: JtlForm, places: dict[str, int], trouble: Trouble) -> Row | None:
    """The whole row that a JMeter wrote behind the torn one of the JMeter before it; None when there is none."""
    if len(record) > _MAX_GLUED_BYTES:
        return None
    for begin in islice(form.start.finditer(record, 1), _MAX_GLUED):
        if row := _row(record[begin.start() :], form, places, trouble):
            return row
    return None


def _values(cells: list[str], places: dict[str, int], form: JtlForm, trouble: Trouble) -> Row:
    """The cells as values. ValueError when a needed one is none."""
    row: Row = {}
    for name, place in places.items():
        cell = cells[place]
        if name == TIME:
            row[name] = form.stamps.read(cell)
        elif name == SUCCESS:
            if cell.lower() not in ("true", "false"):
                raise ValueError(cell)
            row[name] = cell.lower() == "true"
        elif COLUMNS[name] is int:
            row[name] = _number(cell, trouble, needed=name in NEEDED)
        else:
            row[name] = cell
    return row


def _number(cell: str, trouble: Trouble, *, needed: bool) -> int | None:
    """A whole number, also with separators between groups of three. ValueError when it is none."""
    cell = cell.lstrip(" \t")  # as polars does
    if _GROUPED.fullmatch(cell):
        trouble.localized += 1
        cell = re.sub(r"[^\d-]", "", cell)
    if not _PLAIN.fullmatch(cell):
        if cell or needed:
            raise ValueError(cell)
        return None
    found = int(cell)
    if needed and abs(found) > MAX_ELAPSED_MS:
        raise ValueError(cell)
    return found
