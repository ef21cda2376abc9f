"""Figures of a tool that records every request: per label, per code, per second. Units stand in every name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agents.results.elapsed_counts import ElapsedCounts
from agents.results.report import LatencySummary, latency_json

MAX_SHOWN_LABELS = 500
MAX_SHOWN_FAILURES = 100
MAX_ELAPSED_ROWS = 500_000
"""How many different times of all labels together are kept for putting reports together: 8 MB."""


@dataclass(frozen=True)
class LabelFigures:
    """The requests of one label. `transaction`: a span over several requests, which counts nowhere else.

    `duration_s` is from its first request to its last answer. `elapsed` are the exact times, for putting reports
    together; they are not stored, and None where they would be too many.
    """

    requests: int
    errors: int
    latency: LatencySummary
    throughput_rps: float | None = None
    bytes_read: int | None = None
    transaction: bool = False
    duration_s: float | None = None
    elapsed: ElapsedCounts | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {"requests": self.requests, "errors": self.errors, **latency_json(self.latency)}
        out.pop("histogram", None)
        if self.throughput_rps is not None:
            out["throughput_rps"] = self.throughput_rps
        if self.bytes_read is not None:
            out["bytes"] = self.bytes_read
        if self.transaction:
            out["transaction"] = True
        return out


@dataclass(frozen=True)
class Failure:
    """How requests of a label failed: the code, the message, and how often."""

    label: str
    code: str
    message: str
    count: int


@dataclass(frozen=True)
class Course:
    """The requests over time, by when they ended, by the driver host's clock. A step without requests is left out.

    `active_threads` is the greatest number in the step, None when the file does not tell.
    """

    step_s: float
    ended_unix_s: tuple[float, ...]
    requests: tuple[int, ...]
    errors: tuple[int, ...]
    latency_mean_ms: tuple[float, ...]
    active_threads: tuple[int, ...] | None

    def to_json(self) -> dict[str, object]:
        out: dict[str, object] = {
            "step_s": self.step_s,
            "ended_unix_s": list(self.ended_unix_s),
            "requests": list(self.requests),
            "errors": list(self.errors),
            "latency_mean_ms": list(self.latency_mean_ms),
        }
        if self.active_threads is not None:
            out["active_threads"] = list(self.active_threads)
        return out


@dataclass(frozen=True)
class RequestFigures:
    """What a file with a record per request says on top of a report. None = the file does not say.

    `rows` are all records of the file, `parts` those that belong to another request (redirects, embedded resources).
    `started_ms` and `ended_ms` are of one driver host's clock: the first's when several tools were put together.
    """

    started_ms: int | None
    ended_ms: int | None
    errors: int
    error_pct: float
    rows: int
    parts: int
    response_codes: Mapping[str, int]
    labels: Mapping[str, LabelFigures]
    failures: tuple[Failure, ...] = ()
    sent_bytes: int | None = None
    max_active_threads: int | None = None
    course: Course | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, object]:
        labels = sorted(self.labels.items(), key=lambda item: -item[1].requests)[:MAX_SHOWN_LABELS]
        out: dict[str, object] = {
            **{name: at for name in ("started_ms", "ended_ms") if (at := getattr(self, name)) is not None},
            "errors": self.errors,
            "error_pct": self.error_pct,
            "rows_in_file": self.rows,
            "sub_samples": self.parts,
            "response_codes": dict(self.response_codes),
            "labels": {name: figures.to_json() for name, figures in labels},
        }
        if self.failures:
            shown = self.failures[:MAX_SHOWN_FAILURES]
            out["failures"] = [
                {"label": f.label, "code": f.code, "message": f.message, "count": f.count} for f in shown
            ]
        for name in ("sent_bytes", "max_active_threads"):
            if (value := getattr(self, name)) is not None:
                out[name] = value
        if self.course is not None:
            out["course"] = self.course.to_json()
        return out


def bounded(labels: Mapping[str, LabelFigures]) -> dict[str, LabelFigures]:
    """The labels, with the exact times of as many as may be kept, those with the most requests first."""
    left, kept = MAX_ELAPSED_ROWS, dict(labels)
    for name, figures in sorted(labels.items(), key=lambda item: -item[1].requests):
        left -= len(figures.elapsed or ())
        if left < 0:
            kept[name] = replace(figures, elapsed=None)
    return kept
