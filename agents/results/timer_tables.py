"""Tables of timers that an application prints (Action, Total ms, Count, T/C, Percent), as text, CSV or Markdown."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass

from agents.base.errors import ParseError

MAX_CHARS = 2_000_000
MAX_ROWS = 20_000
MAX_ACTION_CHARS = 300

_COLUMNS: dict[str, re.Pattern[str]] = {
    "action": re.compile(r"\b(?:action|timer|component|method)\b", re.IGNORECASE),
    "total": re.compile(r"\btotal\b(?:\s*\(?(?P<unit>ns|us|µs|ms|s)\b\)?)?", re.IGNORECASE),
    "count": re.compile(r"\bcount\b|\bcalls\b", re.IGNORECASE),
    "average": re.compile(r"\bT/C\b(?:\s*\(?(?P<unit>ns|us|µs|ms|s)\b\)?)?", re.IGNORECASE),
    "percent": re.compile(r"\bpercent\b|%", re.IGNORECASE),
    "cpus": re.compile(r"\bcpus?\b", re.IGNORECASE),
}
_MS_PER = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1000.0}
_NUMBER = re.compile(r"\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,9})?|\.\d{1,9}", re.ASCII)
_RULE = re.compile(r"[\s|:+=_-]*[-=]{2,}[\s|:+=_-]*")
_PREFIX = re.compile(r"\[\s*(\d{1,5})\s*\]\s*", re.ASCII)


@dataclass(frozen=True)
class TimerRow:
    """One action. `ms_per_count` is the average as it was printed, `percent` its share as printed; None = not there.

    `cpus` is the number of CPUs of the run, from a prefix "[4]" or a column; None when the table does not say.
    `average_differs`: the printed average is not total / count within its last digit.
    """

    action: str
    total_ms: float
    count: int
    ms_per_count: float | None = None
    percent: float | None = None
    cpus: int | None = None
    average_differs: bool = False

    @property
    def computed_ms_per_count(self) -> float | None:
        """Total / count; None when it never ran."""
        return self.total_ms / self.count if self.count else None


@dataclass(frozen=True)
class _Header:
    """Names of the columns in their order, their units, and what separates them ("" = white space)."""

    names: tuple[str, ...]
    units: dict[str, str]
    separator: str


def read_timer_table(text: str) -> tuple[TimerRow, ...]:
    """The rows in their order. ParseError names the line that cannot be read."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the table has {len(text)} characters; at most {MAX_CHARS} are read")
    header: _Header | None = None
    rows: list[TimerRow] = []
    seen: set[tuple[int | None, str]] = set()
    lines = text.removeprefix("\ufeff").replace("\u00a0", " ").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or _RULE.fullmatch(line):
            continue
        if header is None:
            header = _header(line, number)
            continue
        row = _row(line, header, number)
        key = (row.cpus, row.action)
        if key in seen:
            raise ParseError(f"'{row.action[:80]}' stands twice", line=number, hint="One row per action and CPU count.")
        if len(rows) >= MAX_ROWS:
            raise ParseError(f"the table has more than {MAX_ROWS} rows", line=number)
        seen.add(key)
        rows.append(row)
    if not rows:
        raise ParseError("there is no table of timers in this text", hint="Its header has Action, Total and Count.")
    return tuple(rows)


def _header(line: str, number: int) -> _Header:
    separator = next((s for s in ("|", "\t", ";", ",") if line.count(s) >= 2), "")
    found: list[tuple[int, str]] = []
    units = {}
    for name, pattern in _COLUMNS.items():
        match = pattern.search(line)
        if match:
            found.append((match.start(), name))
            if "unit" in pattern.groupindex:
                units[name] = (match["unit"] or "ms").lower()
    names = tuple(name for _, name in sorted(found))
    if separator:
        names = tuple(_name(cell) for cell in _cells(line, separator))
    missing = [name for name in ("action", "total", "count") if name not in names]
    if missing or len(set(names) - {""}) != len([name for name in names if name]):
        raise ParseError(
            "this is not the header of a table of timers", line=number, hint="It has Action, Total (ms) and Count."
        )
    return _Header(names, units, separator)


def _name(cell: str) -> str:
    """The column that a header's cell names, "" for one that is of no interest."""
    return next((name for name, pattern in _COLUMNS.items() if pattern.search(cell)), "")


def _cells(line: str, separator: str) -> list[str]:
    if separator == "|":
        return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, strict=True))]
    except csv.Error:
        return []


def _row(line: str, header: _Header, number: int) -> TimerRow:
    cpus = None
    rest = line.strip()
    if header.separator == "|":
        rest = rest.removeprefix("|").strip()
    if prefix := _PREFIX.match(rest):
        cpus, rest = int(prefix[1]), rest[prefix.end() :]
    cells = _cells(rest, header.separator) if header.separator else _words(rest, header)
    if len(cells) != len(header.names):
        raise ParseError(f"a row needs {len(header.names)} columns, this one has {len(cells)}", line=number)
    values = dict(zip(header.names, cells, strict=True))
    action = values["action"]
    if (inner := _PREFIX.match(action)) and cpus is None:
        cpus, action = int(inner[1]), action[inner.end() :]
    if not action or len(action) > MAX_ACTION_CHARS:
        raise ParseError("the action has no name, or one that is too long", line=number)
    total_ms = _number(values["total"], number) * _MS_PER[header.units["total"]]
    count = _number(values["count"], number)
    if count != int(count):
        raise ParseError(f"a count is a whole number, not '{values['count'][:20]}'", line=number)
    if "cpus" in values:
        cpus = int(_number(values["cpus"], number))
    average = values.get("average", "")
    percent = values.get("percent", "").removesuffix("%").strip()
    scale = _MS_PER[header.units.get("average", "ms")]
    return TimerRow(
        action=action,
        total_ms=total_ms,
        count=int(count),
        ms_per_count=_number(average, number) * scale if average else None,
        percent=_number(percent, number) if percent else None,
        cpus=cpus,
        average_differs=bool(average and count) and not _agrees(average, total_ms / count / scale),
    )


def _words(text: str, header: _Header) -> list[str]:
    """The columns of a row that white space separates: all but the action are one word each."""
    words = text.split()
    before = header.names.index("action")
    after = len(header.names) - 1 - before
    if len(words) < len(header.names):
        return words
    middle = words[before : len(words) - after]
    return [*words[:before], " ".join(middle), *words[len(words) - after :]]


def _number(text: str, line: int) -> float:
    if not _NUMBER.fullmatch(text):
        raise ParseError(f"'{text[:40]}' is not a number that a timer can have", line=line)
    value = float(text.replace(",", ""))
    if not math.isfinite(value):
        raise ParseError(f"'{text[:40]}' is too large", line=line)
    return value


def _agrees(printed: str, computed: float) -> bool:
    """Whether a printed average is the computed one, rounded or cut off."""
    decimals = len(printed.partition(".")[2])
    return abs(float(printed.replace(",", "")) - computed) <= 10.0**-decimals * (1 + 1e-9)
