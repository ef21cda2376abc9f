"""The figures that BenchHub knows: unit, direction and noise floor are data. A team's own: `own_metrics`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.system import MEMBER_PATTERN


@dataclass(frozen=True)
class MetricSpec:
    """`noise_floor_ratio` is the smallest relative change worth a second look; `high` the largest value that can be."""

    name: str
    label: str
    unit: str
    direction: Literal["higher", "lower"]
    noise_floor_ratio: float = 0.02
    high: float | None = None

    @property
    def higher_is_better(self) -> bool:
        return self.direction == "higher"


THROUGHPUT = "throughput_rps"
METRICS: dict[str, MetricSpec] = {
    metric.name: metric
    for metric in (
        MetricSpec(THROUGHPUT, "Throughput", "requests/s", "higher"),
        MetricSpec("latency_mean_ms", "Latency, mean", "ms", "lower"),
        MetricSpec("latency_p50_ms", "Latency, p50", "ms", "lower"),
        MetricSpec("latency_p75_ms", "Latency, p75", "ms", "lower", 0.03),
        MetricSpec("latency_p90_ms", "Latency, p90", "ms", "lower", 0.03),
        MetricSpec("latency_p95_ms", "Latency, p95", "ms", "lower", 0.04),
        MetricSpec("latency_p99_ms", "Latency, p99", "ms", "lower", 0.05),
        MetricSpec("latency_p99.9_ms", "Latency, p99.9", "ms", "lower", 0.1),
        MetricSpec("latency_max_ms", "Latency, max", "ms", "lower", 0.2),
        MetricSpec("errors_total", "Errors", "count", "lower", 0.0),
        MetricSpec("bytes_per_s", "Transfer", "bytes/s", "higher"),
        MetricSpec("sut_cpu_ratio", "SUT CPU", "ratio", "lower", high=1.0),
        MetricSpec("driver_cpu_ratio", "Driver CPU", "ratio", "lower", high=1.0),
        MetricSpec("server_cpu_ratio", "Server process CPU", "CPUs", "lower"),
        MetricSpec("cpu_ms_per_request", "Server CPU per request", "ms", "lower"),
        MetricSpec("energy_j_per_request", "Energy per request", "J", "lower"),
        MetricSpec("throughput_per_core_rps", "Throughput per core", "requests/s", "higher"),
        MetricSpec("requests_per_cpu_s", "Requests per CPU-second", "requests", "higher"),
        MetricSpec("sut_memory_used_bytes", "SUT memory in use", "bytes", "lower"),
    )
}

LABELS: Mapping[str, str] = {
    "transactions_per_s": "Transactions",
    "queries_per_s": "Queries",
    "events_per_s": "Events",
    "throughput_ops_per_s": "Operations",
    "operations_per_s": "Operations",
    "iops": "I/O requests",
    "reads_per_s": "Reads",
    "writes_per_s": "Writes",
    "fsyncs_per_s": "Syncs",
    "bits_per_s": "Bandwidth",
    "cpu_ratio": "CPU",
    **{name: metric.label for name, metric in METRICS.items()},
}
"""How people call the figures of the load tools, whose units are not BenchHub's alone."""

ROLE_FIGURES: Mapping[str, MetricSpec] = {
    metric.name: metric
    for metric in (
        MetricSpec("cpu_ratio", "CPU of", "ratio", "lower"),
        MetricSpec("server_cpu_ratio", "Server process CPU of", "CPUs", "lower"),
        MetricSpec("memory_used_bytes", "Memory in use of", "bytes", "lower"),
        MetricSpec("received_bytes_per_s", "Received by", "bytes/s", "higher"),
        MetricSpec("sent_bytes_per_s", "Sent by", "bytes/s", "higher"),
    )
}
"""What each member of a system of several hosts has, behind its role: `database.cpu_ratio` is "CPU of database"."""

ENOUGH_BEYOND = 10
"""A percentile is a figure when at least so many requests lie beyond it, as in the curves of the analysis."""
_ROLE = re.compile(MEMBER_PATTERN)
_PERCENTILE = re.compile(r"latency_p([0-9.]+)_ms")

ERROR_KINDS = ("connect", "read", "write", "timeout", "status", "other")
"""The kinds of errors in a load report; each request that failed is in one of them."""


def own_metric(name: str, unit: str, direction: Literal["higher", "lower"]) -> MetricSpec:
    """A metric of a team's own, or one of a load tool in the tool's own unit."""
    return MetricSpec(name, label_of(name), unit, direction)


def role_figure(role: str, name: str) -> str:
    """How a figure of ROLE_FIGURES is called in a run of a system."""
    return f"{role}.{name}"


def role_metric(name: str) -> MetricSpec | None:
    """The metric of a figure that a member of a system has; None for any other name. A team's own goes first."""
    role, _, of_role = name.partition(".")
    if of_role not in ROLE_FIGURES or not _ROLE.fullmatch(role):
        return None
    figure = ROLE_FIGURES[of_role]
    return replace(figure, name=name, label=f"{figure.label} {role}")


def declared(report: Mapping[str, Any]) -> list[MetricSpec]:
    """The own metrics in a load report (`LoadReport.to_json`), as the benchmark declares them."""
    own = report.get("own_metrics", ())
    return [own_metric(str(one["name"]), str(one["unit"]), one["direction"]) for one in own]


def label_of(name: str) -> str:
    """How people call the metric: `get.throughput_rps` is "Throughput of get"; a team's own one goes by its name."""
    part, _, figure = name.partition(".")
    if name in LABELS or figure not in LABELS:
        of_role = None if name in LABELS else role_metric(name)
        return of_role.label if of_role else LABELS.get(name, name)
    return f"{LABELS[figure]} of {part}"


def is_percentile(name: str) -> bool:
    """Whether it is a percentile of latency, which is none where too few requests support it."""
    return _PERCENTILE.fullmatch(name) is not None


def _is_supported(name: str, requests: Any) -> bool:
    """Whether a percentile stands for more than a handful of the requests; where nobody counted them it is believed."""
    match = _PERCENTILE.fullmatch(name)
    return (
        match is None
        or not isinstance(requests, int | float)
        or requests * (100 - float(match[1])) >= 100 * ENOUGH_BEYOND - 1e-6
    )


def figures(report: Mapping[str, Any]) -> dict[str, float]:
    """The figures in a load report (`LoadReport.to_json`), a team's own ones too; what nobody said stays out.

    A percentile that too few requests support is none: p99.9 of 574 requests is their maximum.
    """
    found = {
        name: float(report[name])
        for name in METRICS
        if isinstance(report.get(name), int | float) and _is_supported(name, report.get("requests"))
    }
    counted = [n for k in ERROR_KINDS if isinstance(n := report.get(f"errors_{k}"), int | float)]
    if counted:
        found["errors_total"] = float(sum(counted))
    own = {str(metric["name"]): float(metric["value"]) for metric in report.get("own_metrics", ())}
    return {name: value for name, value in own.items() if name not in METRICS} | found
