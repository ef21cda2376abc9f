"""Tables of timers of runs side by side, over their CPU counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.results.timer_tables import TimerRow
from experiments.analysis.timers import TimerColumn, TimerGrowth, Timing, compare_timers, sentence
from experiments.judging.comparing.scaling import cpus_of
from experiments.models import Run, TimerTable


@dataclass(frozen=True)
class TimerComparison:
    """Tables side by side; a table that covers several CPU counts is one column for each of them."""

    name: str
    columns: tuple[TimerColumn, ...]
    rows: tuple[TimerGrowth, ...]
    sentence: str
    differing: tuple[str, ...]


def rows_of(table: TimerTable) -> list[TimerRow]:
    return [TimerRow(**row) for row in table.rows]


def timers_of(runs: Sequence[Run]) -> list[TimerComparison]:
    """The tables of these runs by name, the columns in the order of CPU counts."""
    tables: dict[str, list[tuple[Run, TimerTable]]] = {}
    by_run = {run.pk: run for run in runs}
    for table in TimerTable.objects.filter(run__in=runs).order_by("name", "run__number"):
        tables.setdefault(table.name, []).append((by_run[table.run_id], table))
    return [_compared(name, found, several_runs=len(runs) > 1) for name, found in tables.items()]


def _compared(name: str, tables: Sequence[tuple[Run, TimerTable]], *, several_runs: bool) -> TimerComparison:
    found: list[tuple[int, int, TimerColumn]] = []
    differing = []
    for run, table in tables:
        by_cpus: dict[int, dict[str, Timing]] = {}
        for row in rows_of(table):
            cpus = row.cpus or cpus_of(run)
            by_cpus.setdefault(cpus, {})[row.action] = Timing(row.count, row.total_ms)
            if row.average_differs:
                printed, computed = row.ms_per_count or 0.0, row.computed_ms_per_count or 0.0
                differing.append(f"{row.action} ({_cpus(cpus)}): {printed:g} ms printed, {computed:.3g} ms computed")
        for cpus, timings in by_cpus.items():
            label = f"#{run.number}, {_cpus(cpus)}" if several_runs else _cpus(cpus)
            found.append((cpus, run.number, TimerColumn(label, timings)))
    columns = tuple(column for _, _, column in sorted(found, key=lambda one: one[:2]))
    rows = compare_timers(columns)
    return TimerComparison(name, columns, rows, sentence(columns, rows), tuple(differing))


def _cpus(cpus: int) -> str:
    return "CPUs unknown" if not cpus else "1 CPU" if cpus == 1 else f"{cpus} CPUs"


def comparison_json(comparison: TimerComparison) -> dict[str, Any]:
    """The comparison as the API gives it."""
    return {
        "name": comparison.name,
        "columns": [column.label for column in comparison.columns],
        "sentence": comparison.sentence,
        "differing": list(comparison.differing),
        "rows": [
            {
                "action": row.action,
                "ms_per_count": [timing.ms_per_count if timing else None for timing in row.timings],
                "counts": [timing.count if timing else None for timing in row.timings],
                "growth_ratio": row.ratio,
                "added_ms": row.added_ms,
            }
            for row in comparison.rows
        ],
    }
