"""A run's figures: the columns that repeat some of them for lists and sorts, and which of them may be used."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.models import Run

COLUMNS = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "sut_cpu_ratio", "driver_cpu_ratio")


def summarise(run: Run, metrics: Mapping[str, float]) -> None:
    """Set the run's metrics and the columns that repeat some of them; the caller saves it."""
    run.metrics = dict(metrics)
    for name in COLUMNS:
        setattr(run, name, metrics.get(name))
    run.errors_total = int(metrics["errors_total"]) if "errors_total" in metrics else None


def is_hidden(run: Run, metric: str) -> bool:
    """Whether saturation makes this figure meaningless: it is latency, and that latency is backlog."""
    return run.hides_latency and metric.startswith("latency_")


def figure(run: Run, metric: str) -> float | None:
    """The figure; None when the run has none of it, or one that is hidden."""
    value: float | None = None if is_hidden(run, metric) else run.metrics.get(metric)
    return None if value is None else float(value)
