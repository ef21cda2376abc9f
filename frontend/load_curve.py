"""The throughput-latency curve: what latency each step of the load had, and where the knee is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from agents.drivers.base import Driver
from agents.drivers.rates import offered_rate_rps
from experiments.metrics import METRICS
from experiments.models import Experiment, Run, Variant
from experiments.runs.summary import figure

LATENCY = "latency_p99_ms"


@dataclass(frozen=True)
class CurvePoint:
    """One step of the load: what was offered (a rate, or connections) and what came of it."""

    throughput_rps: float | None
    latency_ms: float
    offered: float
    name: str
    counts: bool = True


def curve_json(
    points: Sequence[CurvePoint], *, label: str, of: str, objective_ms: float | None = None
) -> dict[str, Any]:
    """The JSON of charts/curve.js: points in the order of what was offered; `of` says what that is."""
    shown = sorted((p for p in points if p.counts and p.throughput_rps is not None), key=lambda p: p.offered)
    return {
        "label": label,
        "of": of,
        "objective_ms": objective_ms,
        "points": [{"x": p.throughput_rps, "y": p.latency_ms, "offered": p.offered, "name": p.name} for p in shown],
    }


def load_points(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> list[CurvePoint]:
    """One point per variant with counted repetitions: their means, and what its load tool offered.

    That is the rate, else the users or connections; a workload without any of them has no points.
    """
    found = []
    driver: Driver = experiment.workload.document().driver
    for variant in variants:
        counted = [
            (run.throughput_rps, latency_ms)
            for run in runs
            if run.variant_id == variant.pk
            and experiment.compares(run.block)
            and run.is_usable
            and run.throughput_rps
            and (latency_ms := figure(run, LATENCY)) is not None
        ]
        offered = variant.offered_rate_rps or offered_rate_rps(driver) or _concurrency(driver)
        if counted and offered:
            throughput_rps, latency_ms = (mean(column) for column in zip(*counted, strict=True))
            found.append(CurvePoint(throughput_rps, latency_ms, offered, variant.name))
    return found


def curve_over_loads(points: Sequence[CurvePoint]) -> dict[str, Any] | None:
    """The curve, when there is more than one load."""
    if len({point.offered for point in points}) < 2:
        return None
    return curve_json(points, label=METRICS[LATENCY].label, of="offered")


def _concurrency(driver: Driver) -> float | None:
    value = getattr(driver, "users", None) or getattr(driver, "connections", None)
    return None if value is None else float(value)
