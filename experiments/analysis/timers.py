"""Timers across CPU counts or runs: which component's time per call grows most, and which costs most in all.

Arithmetic: ratios of the first and the last column, in docs/scaling.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """How often an action ran, and how long in all."""

    count: int
    total_ms: float

    @property
    def ms_per_count(self) -> float | None:
        return self.total_ms / self.count if self.count else None


@dataclass(frozen=True)
class TimerColumn:
    """One table: its label ("4 CPUs", "#12") and the timing of each action."""

    label: str
    timings: Mapping[str, Timing]


@dataclass(frozen=True)
class TimerGrowth:
    """One action over the columns. `ratio` is the last time per call over the first one; None where one is missing.

    `added_ms` is what the growth costs in the last column: the calls there times what each takes longer.
    """

    action: str
    timings: tuple[Timing | None, ...]
    ratio: float | None
    added_ms: float | None


def compare_timers(columns: Sequence[TimerColumn]) -> tuple[TimerGrowth, ...]:
    """Every action with its growth from the first column to the last, the biggest ratio first."""
    actions = dict.fromkeys(action for column in columns for action in column.timings)
    found = [_growth(action, tuple(column.timings.get(action) for column in columns)) for action in actions]
    return tuple(sorted(found, key=lambda row: (row.ratio is None, -(row.ratio or 0.0), row.action)))


def sentence(columns: Sequence[TimerColumn], rows: Sequence[TimerGrowth]) -> str:
    """What grew most per call, and what the growth costs most; empty when nothing can be compared."""
    known = [row for row in rows if row.ratio is not None]
    if len(columns) < 2 or not known:
        return ""
    first, last = columns[0].label, columns[-1].label
    most = known[0]
    if most.ratio is None or most.ratio <= 1:
        return f"From {first} to {last} no action takes longer per call."
    text = f"From {first} to {last} {most.action} grew most: {_per_call(most)} per call ({most.ratio:.2f} times)."
    costly = max(known, key=lambda row: row.added_ms or 0.0)
    if costly.action != most.action and costly.added_ms:
        text += (
            f" {costly.action} costs most in all: {_per_call(costly)} per call, {costly.added_ms / 1000:,.1f} s more."
        )
    return text


def _growth(action: str, timings: tuple[Timing | None, ...]) -> TimerGrowth:
    first = timings[0].ms_per_count if timings and timings[0] else None
    end = timings[-1] if timings else None
    last = end.ms_per_count if end else None
    if len(timings) < 2 or not first or last is None or end is None:
        return TimerGrowth(action, timings, None, None)
    return TimerGrowth(action, timings, last / first, (last - first) * end.count)


def _per_call(row: TimerGrowth) -> str:
    first, last = row.timings[0], row.timings[-1]
    before, after = (side.ms_per_count or 0.0 if side else 0.0 for side in (first, last))
    return f"{before:.3g} → {after:.3g} ms"
