"""Adds up a result file piece by piece in bounded memory: each gives small tables, exact to the millisecond."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl.form import ACTIVE, CODE, ELAPSED, LABEL, MESSAGE, SUCCESS, SUMMED, TIME, TRANSACTION
from agents.drivers.jmeter.jtl.frames import pl

INSIDE, SPANS, COUNT, START, END = "inside", "spans", "count", "start", "end"
STEP, ERRORS, TOTAL = "step", "errors", "total"
KEYS = (LABEL, CODE, SUCCESS, INSIDE, SPANS)

MERGE_AFTER = 64
MAX_LABELS = 5_000
MAX_FAILURES = 5_000
MAX_STEPS = 400_000
SERIAL = re.compile(r"(.+)-\d{1,6}", re.DOTALL)
"""How JMeter names the parts of a request: `LABEL-0`, `LABEL-1`."""

_GROUP_KEYS = (*KEYS, ELAPSED)
_FAILURE_KEYS = (LABEL, CODE, MESSAGE)


@dataclass(frozen=True)
class Part:
    """`groups`: rows by label, code, success and elapsed ms. `course`: by the second in which they ended.

    `back_ms` is by how much the clock went back between two rows, 0 when it did not.
    """

    rows: int
    groups: pl.DataFrame
    course: pl.DataFrame
    failures: pl.DataFrame
    first_end_ms: int
    last_end_ms: int
    back_ms: int


def count(frame: pl.DataFrame) -> Part:
    """Count the rows. The column `inside`, when there is one, marks rows that are parts of the row before."""
    if MESSAGE in frame.columns and (frame[MESSAGE].str.len_bytes().max() or 0) >= len(TRANSACTION):  # type: ignore[operator]
        frame = frame.with_columns(pl.col(MESSAGE).str.starts_with(TRANSACTION).fill_null(value=False).alias(SPANS))
    return part_of(pl.collect_all(tables(frame.lazy(), frame.columns)))


def tables(rows: pl.LazyFrame, names: Sequence[str]) -> list[pl.LazyFrame]:
    """What `part_of` makes a part of, from rows with the columns `names`."""
    flags = [name for name in (INSIDE, SPANS) if name in names]
    counted = rows.filter(~pl.any_horizontal(flags)) if flags else rows
    end = pl.col(TIME) + pl.col(ELAPSED)
    return [
        _groups(rows, names),
        _course(counted, end, names),
        counted.filter(~pl.col(SUCCESS))
        .group_by([name for name in (LABEL, CODE, MESSAGE) if name in names])
        .agg(pl.len().cast(pl.Int64).alias(COUNT)),
        counted.select(end.alias(END)),
    ]


def part_of(counted: Sequence[pl.DataFrame]) -> Part:
    """The part, from the collected `tables`."""
    groups, course, failures, ended = counted
    ends_ms = ended[END].to_numpy()
    return Part(
        rows=int(groups[COUNT].sum()),
        groups=groups,
        course=course,
        failures=failures,
        first_end_ms=int(ends_ms[0]) if len(ends_ms) else 0,
        last_end_ms=int(ends_ms[-1]) if len(ends_ms) else 0,
        back_ms=max(0, -int(np.diff(ends_ms).min())) if len(ends_ms) > 1 else 0,
    )


def _groups(rows: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    keys = [name for name in (*KEYS, ELAPSED) if name in names]
    groups = rows.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias(COUNT),
        *(pl.col(name).sum() for name in SUMMED if name in names),
        pl.col(TIME).min().alias(START),
        pl.col(TIME).max().alias(END),
    )
    flags = [pl.lit(value=False).alias(name) for name in (INSIDE, SPANS) if name not in names]
    return groups.with_columns(pl.col(END) + pl.col(ELAPSED), *flags)


def _course(rows: pl.LazyFrame, end: pl.Expr, names: Sequence[str]) -> pl.LazyFrame:
    return rows.group_by((end // 1000).alias(STEP)).agg(
        pl.len().cast(pl.Int64).alias(COUNT),
        (~pl.col(SUCCESS)).sum().cast(pl.Int64).alias(ERRORS),
        pl.col(ELAPSED).sum().alias(TOTAL),
        *(pl.col(name).max().fill_null(0) for name in (ACTIVE,) if name in names),
    )


def merged(frames: list[pl.DataFrame], keys: tuple[str, ...]) -> pl.DataFrame:
    """The tables as one, rows of equal keys added up."""
    columns = sorted(frames[0].columns)
    together = pl.concat([frame.select(columns) for frame in frames])
    names = [name for name in keys if name in together.columns]
    smallest, greatest = {START}, {END, ACTIVE}
    return together.group_by(names).agg(
        pl.col(name).min() if name in smallest else pl.col(name).max() if name in greatest else pl.col(name).sum()
        for name in together.columns
        if name not in names
    )


class Tally:
    """What has been counted so far. `parts` are rows that were seen to be parts of a request and were not added."""

    def __init__(self) -> None:
        self.rows = 0
        self.parts = 0
        self.labels: set[str] = set()
        self.back_ms = 0
        self.failures_cut = False
        self.course_cut = False
        self._groups: list[pl.DataFrame] = []
        self._course: list[pl.DataFrame] = []
        self._failures: list[pl.DataFrame] = []
        self._last_end_ms: int | None = None

    def add(self, piece: Part) -> None:
        """Take in the next piece of the file. ParseError when it has too many different labels."""
        self.rows += piece.rows
        self._groups.append(piece.groups)
        self._course.append(piece.course)
        if piece.failures.height:
            self._failures.append(piece.failures)
        self.see_labels(piece.groups[LABEL].unique().drop_nulls().to_list())
        back = piece.back_ms
        if self._last_end_ms is not None and piece.last_end_ms:
            back = max(back, self._last_end_ms - piece.first_end_ms)
        self.back_ms = max(self.back_ms, back)
        self._last_end_ms = piece.last_end_ms or self._last_end_ms
        if len(self._groups) >= MERGE_AFTER:
            self._merge()

    def see_labels(self, labels: Iterable[str]) -> None:
        self.labels.update(labels)
        if len(self.labels) > MAX_LABELS:
            raise ParseError(
                f"the file has more than {MAX_LABELS:,} different labels",
                hint="Name the samplers for what they do; a label that holds an id of each request cannot be counted.",
            )

    def parents(self) -> set[str]:
        """Labels P for which there is a label `P-N`: their rows may have parts."""
        found = (SERIAL.fullmatch(label) for label in self.labels)
        return {match[1] for match in found if match and match[1] in self.labels}

    def groups(self) -> pl.DataFrame:
        self._merge()
        return self._groups[0]

    def course(self) -> pl.DataFrame:
        self._merge()
        return self._course[0]

    def failures(self) -> pl.DataFrame | None:
        self._merge()
        return self._failures[0] if self._failures else None

    def _merge(self) -> None:
        self._groups = [merged(self._groups, _GROUP_KEYS)]
        self._course = [merged(self._course, (STEP,))]
        if self._course[0].height > MAX_STEPS:
            self.course_cut = True
            self._course = [self._course[0].head(0)]
        if self._failures:
            together = merged(self._failures, _FAILURE_KEYS).sort(COUNT, descending=True)
            self.failures_cut = self.failures_cut or together.height > MAX_FAILURES
            self._failures = [together.head(MAX_FAILURES)]


def has_threads(course: pl.DataFrame) -> bool:
    """Whether any result tells how many threads were active."""
    return ACTIVE in course.columns and course[ACTIVE].drop_nulls().len() > 0
