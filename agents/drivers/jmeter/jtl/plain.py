"""Counts plain pieces of a CSV result file by machine code, which is made once for each installation.

Plain: no quotes, every row with every column, numbers of digits alone, `true` or `false`, few different texts. Of every
other piece it says that it is none, and polars reads that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from agents.drivers.jmeter.jtl import part
from agents.drivers.jmeter.jtl.columns import (
    ACTIVE,
    BYTES,
    CODE,
    ELAPSED,
    LABEL,
    MESSAGE,
    SENT,
    SUCCESS,
    TIME,
    TRANSACTION,
)
from agents.drivers.jmeter.jtl.form import MAX_TIME_MS, JtlForm, Stamps
from agents.drivers.jmeter.jtl.lines import MAX_ELAPSED_MS
from agents.drivers.jmeter.jtl.part import COUNT, END, INSIDE, SPANS, START, Part

log = logging.getLogger(__name__)

CountPlain = Callable[[bytes], Part | None]
"""The rows of whole lines, counted; None when they are not plain."""

Counts = NDArray[np.int64]


def has_plain_pieces(form: JtlForm, names: Sequence[str]) -> bool:
    """Whether pieces may be plain: time stamps in ms, and no wanted column last, where a carriage return may stand."""
    return form.stamps == Stamps() and form.columns[-1] not in names


def plain_counter(form: JtlForm, names: Sequence[str]) -> CountPlain | None:
    """What counts plain pieces of the form; None when there is no machine code, for whatever reason.

    The first time in a process it costs half a second of CPU, and where the code has to be made 2 s.
    """
    try:
        from agents.drivers.jmeter.jtl import compiled as jtl_compiled

        count_plain = _counter(jtl_compiled, form, names)
        count_plain(b"\n")
    except Exception:  # no place to keep it, a full disk, a broken file: polars reads the results all the same
        log.warning("large result files are read without machine code, in twice the time", exc_info=True)
        return None
    return count_plain


def _counter(compiled: ModuleType, form: JtlForm, names: Sequence[str]) -> CountPlain:
    texts = {LABEL: compiled.LABEL, CODE: compiled.CODE, MESSAGE: compiled.MESSAGE, SUCCESS: compiled.SUCCESS}
    numbers = {
        TIME: compiled.TIME,
        ELAPSED: compiled.ELAPSED,
        BYTES: compiled.BYTES,
        SENT: compiled.SENT,
        ACTIVE: compiled.ACTIVE,
    }
    role_of = {name: role for name, role in (numbers | texts).items() if name in names}
    roles = np.array([role_of.get(name, compiled.SKIPPED) for name in form.columns])

    def count_plain(data: bytes) -> Part | None:
        if not data.endswith(b"\n"):
            return None
        spans = np.full((compiled.SUCCESS + 1, compiled.TEXT_SLOTS, 2), -1)
        counts, ends = np.empty((compiled.MAX_KEYS, 9), np.int64), np.empty(4, np.int64)
        given = np.frombuffer(data, np.uint8), ord(form.delimiter), roles, MAX_ELAPSED_MS, MAX_TIME_MS
        used = compiled.count_rows(*given, spans, counts, ends)
        if used == compiled.NOT_PLAIN:
            return None
        try:
            words = {name: _words(data, spans[role]) for name, role in texts.items() if name in names}
        except UnicodeDecodeError:
            return None
        if {word for word in words[SUCCESS] if word is not None} - {"true", "false"}:
            return None
        if any(word and word.startswith(TRANSACTION) for word in words.get(MESSAGE, [])):
            return None
        counts = counts[:used]
        what = counts[:, 0]
        rows, first_end_ms, last_end_ms, back_ms = ends.tolist()
        return Part(
            rows=rows,
            groups=_groups(counts[what <= compiled.FAILED], words, names),
            course=_course(counts[what == compiled.STEP], names),
            failures=_failures(counts[what == compiled.FAILURE], words),
            first_end_ms=first_end_ms,
            last_end_ms=last_end_ms,
            back_ms=back_ms,
        )

    return count_plain


def _words(data: bytes, spans: Counts) -> list[str | None]:
    """The different texts of a column by their places, None at free ones."""
    return [data[begin : begin + size].decode() if size >= 0 else None for begin, size in spans.tolist()]


def _texts(counts: Counts, words: dict[str, list[str | None]], names: Sequence[str]) -> dict[str, pl.Series]:
    """The texts of the columns `names`, which are the numbers behind the first."""
    places = dict(zip(names, counts.T[1:], strict=False))
    return {name: pl.Series(words[name], dtype=pl.String).gather(at) for name, at in places.items() if name in words}


def _groups(counts: Counts, words: dict[str, list[str | None]], names: Sequence[str]) -> pl.DataFrame:
    failed, _, _, elapsed_ms, rows, received, sent, first_ms, last_ms = counts.T
    summed = {name: values for name, values in ((BYTES, received), (SENT, sent)) if name in names}
    return pl.DataFrame(
        _texts(counts, words, (LABEL, CODE))
        | {SUCCESS: failed == 0, INSIDE: np.zeros(len(rows), np.bool_), SPANS: np.zeros(len(rows), np.bool_)}
        | {ELAPSED: elapsed_ms, COUNT: rows, **summed, START: first_ms, END: last_ms + elapsed_ms}
    )


def _course(counts: Counts, names: Sequence[str]) -> pl.DataFrame:
    _, _, _, second, rows, failed, elapsed_ms, active, _ = counts.T
    threads = {ACTIVE: active} if ACTIVE in names else {}
    return pl.DataFrame({part.STEP: second, COUNT: rows, part.ERRORS: failed, part.TOTAL: elapsed_ms, **threads})


def _failures(counts: Counts, words: dict[str, list[str | None]]) -> pl.DataFrame:
    return pl.DataFrame({**_texts(counts, words, (LABEL, CODE, MESSAGE)), COUNT: counts[:, 4]})
