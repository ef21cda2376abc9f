"""The list of runs as CSV: exactly the view, streamed, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from experiments.judging.comparing.changes import throughput_changes
from experiments.models import Run, Team
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.runs.summary import figure
from experiments.telling.run_list.filters import RunFilter, matching
from experiments.telling.run_list.order import sort_key, whole_ordering

CHANGE, AGAINST = "throughput_change_ratio", "throughput_change_against"
_CHUNK = 500


def _plain(name: str) -> Callable[[Run], Any]:
    return lambda run: getattr(run, name)


def _metric(name: str) -> Callable[[Run], Any]:
    return lambda run: figure(run, name)


COLUMNS: dict[str, Callable[[Run], Any]] = {
    "number": _plain("number"),
    "origin": _plain("origin"),
    "state": _plain("state"),
    "outcome": _plain("outcome"),
    "validity": _plain("validity"),
    "experiment": _plain("experiment"),
    "variant": _plain("variant"),
    "block": _plain("block"),
    "application": _plain("application"),
    "recipe": _plain("recipe"),
    "workload": _plain("workload"),
    "sut": _plain("sut"),
    "drivers": _plain("drivers"),
    "labels": lambda run: " ".join(f"{key}={value}" for key, value in run.labels.items()),
    "tags": lambda run: " ".join(run.tags),
    "notes": _plain("notes"),
    "created_by": _plain("created_by"),
    "queued_at": _plain("queued_at"),
    "started_at": _plain("started_at"),
    "finished_at": _plain("finished_at"),
    **{name: _metric(name) for name in METRICS},
    CHANGE: lambda run: None,
    AGAINST: lambda run: None,
    "profiled": _plain("profiled"),
}
"""Column -> what stands in it; the change needs more than the run, and is looked up for many runs at once."""


def csv_rows(team: Team, runs: RunFilter, sort: str = "-number", columns: Sequence[str] = ()) -> Iterator[str]:
    """Lines of CSV with a header, every run of the filter in the order of the view; all columns when none is named."""
    chosen = list(columns) or list(COLUMNS)
    for name in chosen:
        if name not in COLUMNS:
            raise RequestError(f"There is no column {name[:60]!r}; known: {', '.join(COLUMNS)}.", field="columns")
    key, descending = sort_key(sort)
    query = matching(team, runs).with_names().order_by(*whole_ordering(key, descending))
    return _lines(team, chosen, query.iterator(chunk_size=_CHUNK))


def _lines(team: Team, columns: Sequence[str], rows: Iterator[Run]) -> Iterator[str]:
    yield csv_line(columns)
    while chunk := list(islice(rows, _CHUNK)):
        changes = throughput_changes(team, chunk) if {CHANGE, AGAINST}.intersection(columns) else {}
        for run in chunk:
            change = changes.get(run.pk)
            looked_up = {CHANGE: change.ratio, AGAINST: change.against} if change else {}
            yield csv_line(looked_up[name] if name in looked_up else COLUMNS[name](run) for name in columns)


def csv_line(values: Iterable[Any]) -> str:
    """One line of CSV with its line end, each value as `_cell` writes it."""
    buffer = io.StringIO()
    csv.writer(buffer).writerow([_cell(value) for value in values])
    return buffer.getvalue()


def _cell(value: Any) -> str:
    """Text that a spreadsheet takes as text: what could be a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
