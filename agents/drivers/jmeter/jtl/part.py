"""One piece of a result file, counted: small tables that add up to those of the whole file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from agents.drivers.jmeter.jtl.columns import ACTIVE, CODE, ELAPSED, LABEL, MESSAGE, SUCCESS, SUMMED, TIME, TRANSACTION

INSIDE, SPANS, COUNT, START, END = "inside", "spans", "count", "start", "end"
STEP, ERRORS, TOTAL = "step", "errors", "total"
KEYS = (LABEL, CODE, SUCCESS, INSIDE, SPANS)


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
