"""A result file of several runs as the texts of its parts: cut at repeated headers, pauses and clocks set back."""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import ELAPSED, TIME, JtlForm, form_of
from agents.drivers.jmeter.jtl.pauses import longest_usual_s
from agents.drivers.jmeter.jtl.totals import BACK_LIMIT_MS

MAX_PARTS = 100


def split_csv(text: str) -> list[str]:
    """The parts, each with the header; one when nothing speaks for several runs.

    ParseError: no result file in CSV, or more than MAX_PARTS parts.
    """
    data = text.removeprefix("\ufeff")
    form = form_of(data.encode())
    header = form.header.decode("utf-8", "replace").rstrip("\r\n")
    records = _records(data, form)
    ends = [_end_ms(record, form) for record in records]
    steps = sorted({int(end // 1000) for end in ends if end is not None})
    limit_ms = 1000 * longest_usual_s([after - before for before, after in pairwise(steps)])
    parts: list[list[str]] = [[]]
    last_ms: float | None = None
    for record, end_ms in zip(records, ends, strict=True):
        if header and record.startswith(header):  # of a JMeter that appended to the file
            parts.append([])
            last_ms = None
            continue
        if end_ms is not None:
            if last_ms is not None and not -BACK_LIMIT_MS <= end_ms - last_ms <= limit_ms:
                parts.append([])
            last_ms = end_ms
        parts[-1].append(record)
    parts = [part for part in parts if part]
    if len(parts) > MAX_PARTS:
        raise ParseError(f"the file would become {len(parts)} runs, and {MAX_PARTS} are allowed", line=1)
    first_line = f"{header.rstrip()}\n" if header else ""
    return [first_line + "".join(part) for part in parts]


def _records(text: str, form: JtlForm) -> list[str]:
    """Lines, those of a quoted field together."""
    found: list[str] = []
    for line in io.StringIO(text, newline="\n"):  # a message may hold other characters that end a line elsewhere
        if found and found[-1].count('"') % 2 and not form.start.match(line.encode()):
            found[-1] += line
        elif line.strip():
            found.append(line if line.endswith("\n") else f"{line}\n")
    return found


def _end_ms(record: str, form: JtlForm) -> float | None:
    """When the result ended; None for a line that is none."""
    try:
        cells = next(csv.reader([record], delimiter=form.delimiter), [])
        row = dict(zip(form.columns, cells, strict=False))
        end_ms = float(form.stamps.read(row[TIME])) + float(row[ELAPSED])
    except (KeyError, ValueError, csv.Error):
        return None
    return end_ms if math.isfinite(end_ms) else None
