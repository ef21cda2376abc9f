"""Latency percentiles of runs and of variants, as static/js/charts/percentiles.js draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models.fields.json import KeyTransform

from experiments.analysis.percentiles import PercentileCurve, is_supported
from experiments.models import Run, RunEvent, Variant
from experiments.registry.runs.latency_spectra import curves_of, merged_curves
from frontend.charts.samples import run_name


def percentiles_json(runs: Sequence[Run]) -> dict[str, Any]:
    """The latency percentile curve of each run: of its histogram, and as its load tool reported it."""
    reports = dict(
        RunEvent.objects.filter(run__in=runs, kind="load_reported", payload__measured=True)
        .order_by("seq")
        .values_list("run_id", KeyTransform("report", "payload"))
    )
    curves = curves_of(runs)
    return {
        "runs": [
            {"name": run_name(run), "basis": basis_of(reports.get(run.pk) or {}), "points": points}
            for run in runs
            if not run.hides_latency
            and (points := _supported_points(reports.get(run.pk) or run.metrics, curves.get(run.pk)))
        ],
        "note": "",
    }


def variant_percentiles_json(variants: Sequence[Variant], runs: Sequence[Run], basis: str) -> dict[str, Any]:
    """The latency percentile curve of each variant: the histograms of all its counted repetitions, added up."""
    groups = {
        variant.pk: [run for run in runs if run.repeats(variant) and not run.hides_latency] for variant in variants
    }
    merged = merged_curves(groups)
    left_out = [f"#{number}" for one in merged.values() for number in one.left_out]
    return {
        "runs": [
            {
                "name": f"{variant.name}, {len(one.runs)} runs, {one.curve.samples:,} samples",
                "basis": basis.replace("_", " "),
                "points": [{"percentile": point.percentile, "ms": point.value_ms} for point in one.curve.points],
            }
            for variant in variants
            if (one := merged.get(variant.pk)) and one.curve.points
        ],
        "note": f"Without a histogram, so not in it: {', '.join(left_out)}." if left_out else "",
    }


def _supported_points(figures: Mapping[str, Any], curve: PercentileCurve | None) -> list[dict[str, float]]:
    """What the tool reported, and the marks of the histogram; only percentiles that so many samples support."""
    requests = figures.get("requests")
    samples = curve.samples if curve else int(requests) if isinstance(requests, int | float) else None
    points = {point.percentile: point.value_ms for point in curve.points} if curve else {}
    points |= {
        point["percentile"]: point["ms"]
        for point in percentile_points(figures)
        if point["percentile"] < 100 and (samples is None or is_supported(point["percentile"], samples))
    }
    return [{"percentile": percentile, "ms": points[percentile]} for percentile in sorted(points)]


def percentile_points(figures: Mapping[str, Any]) -> list[dict[str, float]]:
    """`latency_p99.9_ms` and the like as (percentile, ms), ascending."""
    points = []
    for name, value in figures.items():
        percentile = name.removeprefix("latency_p").removesuffix("_ms")
        if name.startswith("latency_p") and name.endswith("_ms") and isinstance(value, int | float):
            points.append({"percentile": float(percentile), "ms": float(value)})
    return sorted(points, key=lambda point: point["percentile"])


def basis_of(report: Mapping[str, Any]) -> str:
    return str(report.get("latency_basis", "")).replace("_", " ")
