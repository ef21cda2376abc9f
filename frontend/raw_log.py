"""The log of a run as lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from experiments.models import Run

KINDS = ("logged", "phase_started")


@dataclass(frozen=True)
class LogLine:
    at: datetime
    seq: int
    source: str
    level: str
    text: str


def lines_of(run: Run, *, newest: int | None = None) -> Iterator[LogLine]:
    """Every line in order, or those of the `newest` log events up to the run's `last_seq`, where its stream goes on."""
    events = run.events.filter(kind__in=KINDS)
    if newest:
        events = events.filter(seq__lte=run.last_seq)
    rows = reversed(events.order_by("-seq")[:newest]) if newest else events.order_by("seq").iterator(chunk_size=500)
    for row in rows:
        payload = row.payload
        if row.kind == "logged":
            for text in payload["lines"]:
                yield LogLine(row.at, row.seq, payload["source"], payload.get("level", "info"), text)
        else:
            yield LogLine(row.at, row.seq, "runner", "info", f"Phase {payload['phase'].replace('_', ' ')}")
