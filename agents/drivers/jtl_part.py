"""One piece of a result file, counted: small tables that add up to those of the whole file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from agents.drivers.jtl_columns import (
    ACTIVE,
    CODE,
    ELAPSED,
    LABEL,
    MESSAGE,
    SUCCESS,
    SUMMED,
    TIME,
    TRANSACTION,
)

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
    flags = [] if INSIDE in frame.columns else [pl.lit(value=False).alias(INSIDE)]
    if MESSAGE in frame.columns and (_longest(frame[MESSAGE]) >= len(TRANSACTION)):
        frame = frame.with_columns(pl.col(MESSAGE).str.starts_with(TRANSACTION).fill_null(value=False).alias(SPANS))
    else:
        flags.append(pl.lit(value=False).alias(SPANS))
    keys = [name for name in (*KEYS, ELAPSED) if name in frame.columns]
    end = pl.col(TIME) + pl.col(ELAPSED)
    groups = (
        frame.lazy()
        .group_by(keys)
        .agg(
            pl.len().cast(pl.Int64).alias(COUNT),
            *(pl.col(name).sum() for name in SUMMED if name in frame.columns),
            pl.col(TIME).min().alias(START),
            end.max().alias(END),
        )
        .collect()
    )
    counted = frame if len(flags) == 2 else frame.filter(~_flagged(frame))
    ends = counted[TIME].to_numpy() + counted[ELAPSED].to_numpy()
    failed = counted.filter(~pl.col(SUCCESS))
    words = [name for name in (LABEL, CODE, MESSAGE) if name in frame.columns]
    return Part(
        rows=frame.height,
        groups=groups.with_columns(flags),
        course=_course(counted, ends),
        failures=failed.group_by(words).agg(pl.len().cast(pl.Int64).alias(COUNT)),
        first_end_ms=int(ends[0]) if len(ends) else 0,
        last_end_ms=int(ends[-1]) if len(ends) else 0,
        back_ms=max(0, -int(np.diff(ends).min())) if len(ends) > 1 else 0,
    )


def _longest(words: pl.Series) -> int:
    return int(words.str.len_bytes().max() or 0)  # type: ignore[arg-type]


def _flagged(frame: pl.DataFrame) -> pl.Expr:
    flags = [pl.col(name) for name in (INSIDE, SPANS) if name in frame.columns]
    return pl.any_horizontal(flags)


def _course(frame: pl.DataFrame, ends_ms: np.ndarray[Any, np.dtype[np.int64]]) -> pl.DataFrame:
    """The rows by the second in which they ended. They come almost in order, so those side by side are added first."""
    seconds = ends_ms // 1000
    starts = np.flatnonzero(np.diff(seconds, prepend=np.iinfo(np.int32).min))
    columns = {
        STEP: seconds[starts],
        COUNT: np.diff(starts, append=len(seconds)),
        ERRORS: np.add.reduceat((~frame[SUCCESS]).to_numpy(), starts, dtype=np.int64),
        TOTAL: np.add.reduceat(frame[ELAPSED].to_numpy(), starts),
    }
    if ACTIVE in frame.columns:
        columns[ACTIVE] = np.maximum.reduceat(frame[ACTIVE].fill_null(0).to_numpy(), starts)
    return merged([pl.DataFrame(columns)], (STEP,))


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
