"""The throughput-latency curve: what latency each step of the load had, and where the knee is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from agents.drivers.base.driver import Driver
from agents.drivers.concurrency import concurrency
from agents.drivers.rates import offered_rate_rps
from experiments.judging.comparing.factors import CONCURRENCY, OFFERED_RATE, experiment_factors
from experiments.models import Experiment, Run, Variant
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.runs.summary import figure

LATENCY = "latency_p99_ms"


@dataclass(frozen=True)
class CurvePoint:
    """One step of the load: what was offered (a rate, or connections) and what came of it."""

    throughput_rps: float | None
    latency_ms: float
    offered: float
    name: str
    counts: bool = True
    line: str = ""
    """What it is a load of, where several things were loaded: the points of one line are joined."""


def curve_json(
    points: Sequence[CurvePoint], *, label: str, of: str, objective_ms: float | None = None
) -> dict[str, Any]:
    """The JSON of charts/curve.js: points in the order of what was offered; `of` says what that is."""
    shown = sorted((p for p in points if p.counts and p.throughput_rps is not None), key=lambda p: p.offered)
    return {
        "label": label,
        "of": of,
        "objective_ms": objective_ms,
        "points": [
            {"x": p.throughput_rps, "y": p.latency_ms, "offered": p.offered, "name": p.name, "line": p.line}
            for p in shown
        ],
    }


def load_points(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> list[CurvePoint]:
    """One point per variant with counted repetitions: their means, and what its load tool offered.

    That is the rate, else the users or connections; a workload without any of them has no points.
    """
    found = []
    driver: Driver = content_of(experiment.workload).driver
    factors = {
        name: column
        for name, column in experiment_factors(experiment, variants).items()
        if name not in (OFFERED_RATE, CONCURRENCY)
    }
    for position, variant in enumerate(variants):
        counted = [
            (run.throughput_rps, latency_ms)
            for run in runs
            if run.variant_id == variant.pk
            and experiment.compares(run.block)
            and run.is_usable
            and run.throughput_rps
            and (latency_ms := figure(run, LATENCY)) is not None
        ]
        offered = variant.offered_rate_rps or variant.concurrency or offered_rate_rps(driver) or concurrency(driver)
        if counted and offered:
            throughput_rps, latency_ms = (mean(column) for column in zip(*counted, strict=True))
            line = ", ".join(f"{name} {column[position]}" for name, column in factors.items())
            found.append(CurvePoint(throughput_rps, latency_ms, offered, variant.name, line=line))
    return found


def curve_over_loads(points: Sequence[CurvePoint]) -> dict[str, Any] | None:
    """The curve, when something had more than one load."""
    loads: dict[str, set[float]] = defaultdict(set)
    for point in points:
        loads[point.line].add(point.offered)
    if all(len(offered) < 2 for offered in loads.values()):
        return None
    return curve_json(points, label=METRICS[LATENCY].label, of="offered")
