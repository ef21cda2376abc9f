"""The JSON of charts/scaling.js: points, ideal line, fitted law with its band, peak."""

from __future__ import annotations

from typing import Any

from experiments.judging.comparing.scaling import Point, Scaling

STEPS = 60
BEYOND_RATIO = 1.25
"""How far the law is drawn beyond the last point; farther out it is a guess."""


def scaling_json(scaling: Scaling) -> dict[str, Any]:
    """Both views of the chart, throughput and efficiency, are made of this."""
    law = scaling.law
    last = max(point.group.cpus for point in (*scaling.points, *scaling.several))
    end = last * BEYOND_RATIO if law else last
    curve = []
    if law:
        for step in range(STEPS + 1):
            cpus = scaling.base_cpus + (end - scaling.base_cpus) * step / STEPS
            band = law.band(cpus)
            curve.append(
                {
                    "cpus": round(cpus, 4),
                    "rps": law.at(cpus),
                    "low": max(0.0, band[0]) if band else None,
                    "high": band[1] if band else None,
                }
            )
    peak = law.peak if law else None
    return {
        "base_cpus": scaling.base_cpus,
        "base_rps": scaling.points[0].mean.value,
        "end_cpus": end,
        "law": law.kind if law else None,
        "points": [_point_json(point, scaling) for point in (*scaling.points, *scaling.several)],
        "curve": curve,
        "peak": {"cpus": peak.cpus, "rps": peak.throughput_rps} if peak and peak.cpus <= end else None,
    }


def _point_json(point: Point, scaling: Scaling) -> dict[str, Any]:
    interval = point.efficiency.ci95
    return {
        "cpus": point.group.cpus,
        "instances": point.group.instances,
        "name": point.group.name,
        "load": point.group.load.text,
        "rps": point.mean.value,
        "low": point.mean.ci95[0] if point.mean.ci95 else None,
        "high": point.mean.ci95[1] if point.mean.ci95 else None,
        "ideal": point.ideal_rps,
        "times_base": point.mean.value / scaling.points[0].mean.value,
        "efficiency": point.efficiency.ratio,
        "efficiency_low": interval[0] if interval else None,
        "efficiency_high": interval[1] if interval else None,
        "super_linear": point.efficiency.super_linear,
        "repetitions": [{"number": one.number, "rps": one.throughput_rps} for one in point.group.repetitions],
        "tried": point.tried,
    }
