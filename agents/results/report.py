"""What a load tool reported, whatever tool it was. Units stand in every name; None = the tool did not say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

LoadModel = Literal["open", "closed"]
LatencyBasis = Literal["response_time", "service_time"]
Direction = Literal["higher", "lower"]
"""Which values of a figure are the better ones."""


@dataclass(frozen=True)
class HistogramRow:
    """One row of an HdrHistogram percentile spectrum: `total_count` samples are at or below `value_ms`."""

    value_ms: float
    percentile: float
    total_count: int


@dataclass(frozen=True)
class Histogram:
    """A percentile spectrum with its trailer (`#[Mean = ...`).

    `exact`: each sample has the value of its row; else it lies anywhere above the row before.
    """

    rows: tuple[HistogramRow, ...]
    mean_ms: float | None = None
    stdev_ms: float | None = None
    max_ms: float | None = None
    total_count: int | None = None
    exact: bool = False


@dataclass(frozen=True)
class LatencySummary:
    """Latency as the tool printed it. `percentiles_ms` maps "50", "99.9", "100" to milliseconds."""

    mean_ms: float | None = None
    stdev_ms: float | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    within_stdev_pct: float | None = None
    percentiles_ms: Mapping[str, float] = field(default_factory=dict)
    histogram: Histogram | None = None


@dataclass(frozen=True)
class ThreadRates:
    """wrk's "Req/Sec" row: requests per second per load thread, sampled."""

    mean_rps: float | None = None
    stdev_rps: float | None = None
    max_rps: float | None = None
    within_stdev_pct: float | None = None


@dataclass(frozen=True)
class LoadErrors:
    """Counts. None = the tool does not count this kind; `status` = responses called bad by their status.

    `other` = failed requests of which the tool does not say how they failed.
    """

    connect: int | None = None
    read: int | None = None
    write: int | None = None
    timeout: int | None = None
    status: int | None = None
    other: int | None = None

    @property
    def total(self) -> int:
        return sum(n or 0 for n in (self.connect, self.read, self.write, self.timeout, self.status, self.other))


@dataclass(frozen=True)
class OwnMetric:
    """A figure that BenchHub does not know by name. `direction` is the better one.

    `adds`: a rate, so that those of several tools at work in one window add up.
    """

    name: str
    value: float
    unit: str
    direction: Direction
    adds: bool = False

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "value": self.value, "unit": self.unit, "direction": self.direction}


class MoreFigures(Protocol):
    """What only some tools tell, as flat keys with units; such as `agents.results.request_figures.RequestFigures`."""

    def to_json(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class LoadReport:
    """One tool's report of one phase of load.

    `offered_rate_rps` was asked for, `throughput_rps` was achieved. `duration_nominal_s` is the rounded figure of a
    header line, `duration_s` the printed measured one. `usable` False means that the figures must not enter a
    comparison; `why` says so in plain words. `error` is the tool's own message when it did not run (`complete` False).
    `bytes_read` came from the server, headers included; `body_bytes` leaves the headers out. `status_codes` maps "200"
    to the number of responses, `error_messages` the tool's own words to how often they were true. `details` are figures
    that only this tool prints, units in their names; they are kept and shown, but nothing is computed from them.
    `own_metrics` are a team's own figures; they count like the known ones.
    `users` are those of a closed model that are not connections. `notes` say what a reader of the figures must know.
    """

    tool: str
    format: str
    load_model: LoadModel
    latency_basis: LatencyBasis
    complete: bool = True
    error: str | None = None
    usable: bool = True
    why: str | None = None
    url: str | None = None
    threads: int | None = None
    connections: int | None = None
    users: int | None = None
    offered_rate_rps: float | None = None
    duration_nominal_s: float | None = None
    duration_s: float | None = None
    requests: int | None = None
    throughput_rps: float | None = None
    bytes_read: int | None = None
    bytes_per_s: float | None = None
    body_bytes: int | None = None
    status_codes: Mapping[str, int] = field(default_factory=dict)
    error_messages: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, float | str] = field(default_factory=dict)
    errors: LoadErrors = field(default_factory=LoadErrors)
    thread_rates: ThreadRates | None = None
    latency: LatencySummary | None = None
    uncorrected_latency: LatencySummary | None = None
    calibrated_threads: int | None = None
    started_or_written_at: str | None = None
    own_metrics: tuple[OwnMetric, ...] = ()
    notes: tuple[str, ...] = ()
    more: MoreFigures | None = None

    def to_json(self) -> dict[str, object]:
        """The report as flat keys with units (`latency_p99.9_ms`, `errors_connect`); what is unknown is absent."""
        out: dict[str, object] = {"tool": self.tool, "format": self.format, "complete": self.complete}
        plain = {
            "error": self.error,
            "usable": self.usable,
            "why": self.why,
            "load_model": self.load_model,
            "latency_basis": self.latency_basis,
            "url": self.url,
            "threads": self.threads,
            "connections": self.connections,
            "users": self.users,
            "offered_rate_rps": self.offered_rate_rps,
            "duration_nominal_s": self.duration_nominal_s,
            "duration_s": self.duration_s,
            "requests": self.requests,
            "throughput_rps": self.throughput_rps,
            "bytes": self.bytes_read,
            "bytes_per_s": self.bytes_per_s,
            "body_bytes": self.body_bytes,
            "status_codes": dict(self.status_codes) or None,
            "errors": dict(self.error_messages) or None,
            "errors_connect": self.errors.connect,
            "errors_read": self.errors.read,
            "errors_write": self.errors.write,
            "errors_timeout": self.errors.timeout,
            "errors_status": self.errors.status,
            "errors_other": self.errors.other,
            "calibrated_threads": self.calibrated_threads,
            "started_or_written_at": self.started_or_written_at,
            "own_metrics": [metric.to_json() for metric in self.own_metrics] or None,
            "notes": list(self.notes) or None,
        }
        out.update({k: v for k, v in self.details.items() if k not in plain})
        out.update({k: v for k, v in plain.items() if v is not None})
        if self.thread_rates:
            rates = self.thread_rates
            out.update(
                _present(
                    thread_rps_mean=rates.mean_rps,
                    thread_rps_stdev=rates.stdev_rps,
                    thread_rps_max=rates.max_rps,
                    thread_rps_within_stdev_pct=rates.within_stdev_pct,
                )
            )
        if self.latency:
            out.update(latency_json(self.latency))
        if self.uncorrected_latency:
            out["uncorrected"] = latency_json(self.uncorrected_latency)
        if self.more:
            out.update(self.more.to_json())
        return out


def nearest_rank(percentile: float, total: int) -> int:
    """Which of so many sorted samples is the percentile, from 1; 99.9 % of 1,000 are 999, not 999.0000000000001."""
    return max(1, math.ceil(round(percentile / 100 * total, 6)))


def _present(**values: float | None) -> dict[str, object]:
    return {k: v for k, v in values.items() if v is not None}


def latency_json(latency: LatencySummary) -> dict[str, object]:
    """The summary as flat keys; what is unknown is absent."""
    out = _present(
        latency_mean_ms=latency.mean_ms,
        latency_stdev_ms=latency.stdev_ms,
        latency_min_ms=latency.min_ms,
        latency_max_ms=latency.max_ms,
        latency_within_stdev_pct=latency.within_stdev_pct,
    )
    out.update({f"latency_p{p}_ms": v for p, v in latency.percentiles_ms.items()})
    if (histogram := latency.histogram) is not None and histogram.rows:
        first, last = histogram.rows[0], histogram.rows[-1]
        out["histogram"] = {
            "rows": len(histogram.rows),
            "first": [first.value_ms, first.percentile, first.total_count],
            "last": [last.value_ms, last.percentile, last.total_count],
            **_present(
                mean_ms=histogram.mean_ms,
                stdev_ms=histogram.stdev_ms,
                max_ms=histogram.max_ms,
                total_count=histogram.total_count,
            ),
        }
    return out
