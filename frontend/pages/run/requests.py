"""What only some load tools tell of a run: its requests by label, how they failed, and figures of a team's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models.fields.json import KeyTransform

from agents.drivers.command.figures import FORMAT, read_json
from experiments.models import Run, RunEvent
from experiments.registry.errors import RequestError
from experiments.registry.runs.file_store import whole

MAX_ROWS = 100


@dataclass(frozen=True)
class LabelRow:
    """One label. A transaction spans requests of other labels."""

    name: str
    requests: int
    errors: int
    throughput_rps: float | None
    mean_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    transaction: bool


@dataclass(frozen=True)
class FailureRow:
    label: str
    code: str
    message: str
    count: int


@dataclass(frozen=True)
class OwnFigure:
    """A figure of a benchmark of the team's own. `direction` is the better one."""

    name: str
    value: float
    unit: str
    direction: str


@dataclass(frozen=True)
class Requests:
    """What the run's page shows of the requests; all empty when the tool does not tell it."""

    labels: tuple[LabelRow, ...] = ()
    more_labels: int = 0
    failures: tuple[FailureRow, ...] = ()
    own: tuple[OwnFigure, ...] = ()
    notes: tuple[str, ...] = ()


def requests_of(run: Run) -> Requests:
    """The labels with the most requests first."""
    reported: Mapping[str, Any] | None = (
        RunEvent.objects.filter(run=run, kind="load_reported", payload__measured=True)
        .order_by("seq")
        .values_list(KeyTransform("report", "payload"), flat=True)
        .last()
    )
    report = reported or _imported(run)
    if not report:
        return Requests()
    labels = sorted(report.get("labels", {}).items(), key=lambda item: (-item[1]["requests"], item[0]))
    return Requests(
        labels=tuple(_row(name, figures) for name, figures in labels[:MAX_ROWS]),
        more_labels=max(0, len(labels) - MAX_ROWS),
        failures=tuple(FailureRow(**failure) for failure in report.get("failures", ())[:MAX_ROWS]),
        own=tuple(OwnFigure(**figure) for figure in report.get("own_metrics", ())),
        notes=tuple(report.get("notes", ())),
    )


def _imported(run: Run) -> Mapping[str, Any] | None:
    """The imported report of a benchmark of the team's own: only its text has the units of its figures."""
    if run.origin != Run.Origin.IMPORTED:
        return None
    kept = run.artifacts.filter(name=f"{FORMAT}.txt").first()
    if kept is None:
        return None
    try:
        return read_json(whole(kept).decode()).to_json()
    except RequestError:  # the page has the rest, and the file's own link says what is wrong
        return None


def _row(name: str, figures: Mapping[str, Any]) -> LabelRow:
    return LabelRow(
        name=name,
        requests=figures["requests"],
        errors=figures["errors"],
        throughput_rps=figures.get("throughput_rps"),
        mean_ms=figures.get("latency_mean_ms"),
        p50_ms=figures.get("latency_p50_ms"),
        p95_ms=figures.get("latency_p95_ms"),
        p99_ms=figures.get("latency_p99_ms"),
        max_ms=figures.get("latency_max_ms"),
        transaction=bool(figures.get("transaction")),
    )
