"""The JSON that the chart modules draw: same names here and in static/js/charts."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.fields.json import KeyTransform

from experiments.analysis.interval import mean_of
from experiments.analysis.percentiles import PercentileCurve, is_supported
from experiments.analysis.thinning import thinned
from experiments.judging.comparing.history import MAX_POINTS, MetricHistory
from experiments.models import Run, RunEvent, SampleSeries, Variant
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.latency_spectra import curves_of, merged_curves
from experiments.registry.runs.summary import figure
from frontend.charts.channels import GROUPS, Group, kinds_json

MOST_LINES = 24
LIVE_READINGS = 8000
"""About an hour of a live run, one reading per second and host; once it has ended the whole series is stored."""


def groups_of(run: Run) -> dict[str, Group]:
    """The groups for which this run may have lines; of an imported one those that it has, and others for each unit."""
    channels = dict(SampleSeries.objects.filter(run=run).order_by("channel").values_list("channel", "unit"))
    found = {
        name: group
        for name, group in GROUPS.items()
        if not group.sometimes or any(re.search(group.pattern, channel) for channel in channels)
    }
    if run.origin != Run.Origin.IMPORTED or not channels:
        return found
    seen = {name: group for name, group in found.items() if any(re.search(group.pattern, one) for one in channels)}
    by_unit: dict[str, list[str]] = {}
    for channel, unit in channels.items():
        if not any(re.search(group.pattern, channel) for group in seen.values()):
            by_unit.setdefault(unit, []).append(re.escape(channel))
    others = (
        Group(f"Reported, in {unit}" if unit else "Reported", f"^({'|'.join(names)})$")
        for unit, names in by_unit.items()
    )
    return seen | {f"reported-{number}": group for number, group in enumerate(others)}


@dataclass(frozen=True)
class Part:
    """A part of the time axis, in seconds since measuring began."""

    from_s: float
    to_s: float


def part_in(query: Mapping[str, str]) -> Part | None:
    """The part that `from_s` and `to_s` name; None when they name none, which is the whole."""
    try:
        part = Part(float(query.get("from_s", "")), float(query.get("to_s", "")))
    except ValueError:
        return None
    return part if part.from_s < part.to_s else None


def run_samples_json(
    run: Run, group: Group, t0_unix_s: float | None, duration_s: int | None, part: Part | None = None
) -> dict[str, Any]:
    """The in-run lines of one group: from the stored series, or while the run is live from its events."""
    stored = list(SampleSeries.objects.filter(run=run, channel__regex=group.pattern).order_by("role", "channel"))
    stored.sort(key=lambda line: line.role != "sut")
    lines, zero_unix_s, seq = [channel_json(line, part) for line in stored], t0_unix_s, run.last_seq
    if not lines:
        lines, zero_unix_s, seq = _live_channels(run, group, t0_unix_s)
    busiest = sorted(lines, key=lambda line: -sum(line["values"]) / max(len(line["values"]), 1))[:MOST_LINES]
    return {
        "label": group.label,
        "pattern": group.pattern,
        "channels": kinds_json(group),
        "t0_unix_s": t0_unix_s,
        "zero_unix_s": zero_unix_s,
        "seq": seq,
        "duration_s": duration_s,
        "live": run.is_live,
        "left_out": len(lines) - len(busiest),
        "thinned": is_thinned(stored, lines),
        "lines": [line for line in lines if line in busiest] if len(lines) > MOST_LINES else lines,
    }


def is_thinned(series: Sequence[SampleSeries], lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the whole series have more points than the lines made of them."""
    return sum(len(one.values) for one in series) > sum(len(line["values"]) for line in lines)


def channel_json(series: SampleSeries, part: Part | None = None, **more: object) -> dict[str, Any]:
    """One in-run line or a part of it with a point on either side, thinned out to at most 2,000 points."""
    first, end = 0, len(series.at_s)
    if part is not None:
        first = max(0, bisect_left(series.at_s, part.from_s) - 1)
        end = bisect_right(series.at_s, part.to_s) + 1
    at_s, values = thinned(series.at_s[first:end], series.values[first:end])
    return {"role": series.role, "channel": series.channel, "unit": series.unit, "at_s": at_s, "values": values, **more}


def _live_channels(run: Run, group: Group, t0_unix_s: float | None) -> tuple[list[dict[str, Any]], float | None, int]:
    """The lines, the time that is their zero, and the last event in them: the browser goes on from there."""
    wanted = re.compile(group.pattern)
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    newest = run.events.filter(kind="samples").order_by("-seq").values_list("seq", "payload")[:LIVE_READINGS]
    rows = list(reversed(newest))
    zero = t0_unix_s if t0_unix_s is not None or not rows else rows[0][1]["at_unix_s"]
    for _, payload in rows:
        for channel, (unit, value) in payload["values"].items():
            if not wanted.search(channel):
                continue
            empty = {"role": payload["role"], "channel": channel, "unit": unit, "at_s": [], "values": []}
            line = lines.setdefault((payload["role"], channel), empty)
            line["at_s"].append(round(payload["at_unix_s"] - zero, 3))
            line["values"].append(value)
    for line in lines.values():
        line["at_s"], line["values"] = thinned(line["at_s"], line["values"])
    return list(lines.values()), zero, rows[-1][0] if rows else 0


def metric_json(metric: MetricSpec) -> dict[str, Any]:
    return {
        "name": metric.name,
        "label": metric.label,
        "unit": metric.unit,
        "higher_is_better": metric.higher_is_better,
    }


def history_json(
    histories: Mapping[str, MetricHistory], *, run_url: str, highlight: Iterable[int] = ()
) -> dict[str, Any]:
    """Points of one or more series of a metric. Keys name the hardware; `run_url` is a run's address with 0 in it."""
    points: list[dict[str, Any]] = [
        {
            "number": point.number,
            "at": point.at.isoformat(),
            "value": point.value,
            "recipe": point.recipe,
            "validity": point.validity,
            "labels": dict(point.labels),
            "environment": environment,
        }
        for environment, history in histories.items()
        for point in history.points
    ]
    points.sort(key=lambda point: point["number"])
    return {
        "metric": metric_json(next(iter(histories.values())).metric),
        "run_url": run_url,
        "highlight": list(highlight),
        "truncated": any(history.truncated for history in histories.values()) or len(points) > MAX_POINTS,
        "thinned": any(history.thinned for history in histories.values()),
        "points": points[-MAX_POINTS:],
    }


def ab_json(metric: MetricSpec, variants: Sequence[Variant], runs: Sequence[Run]) -> dict[str, Any]:
    """Per variant the repetitions that count, their mean and its 95 % interval."""
    found = []
    for variant in variants:
        counted = [(run.number, run.metrics[metric.name]) for run in runs if counts(run, variant, metric.name)]
        mean = mean_of([value for _, value in counted])
        found.append(
            {
                "name": variant.name,
                "is_baseline": variant.is_baseline,
                "mean": mean.value if mean else None,
                "low": mean.ci95[0] if mean and mean.ci95 else None,
                "high": mean.ci95[1] if mean and mean.ci95 else None,
                "repetitions": [{"number": number, "value": value} for number, value in counted],
            }
        )
    return {"metric": metric_json(metric), "variants": found}


def counts(run: Run, variant: Variant, metric: str) -> bool:
    """Whether the run is a repetition of the variant whose figure may be used."""
    return run.repeats(variant) and figure(run, metric) is not None


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


def run_name(run: Run) -> str:
    return f"#{run.number} {run.variant.name if run.variant else run.recipe.name if run.recipe else run.origin}"


def overlay_json(runs: Sequence[Run], channel: str, part: Part | None = None) -> dict[str, Any]:
    """One channel of both hosts for several runs over each other, aligned at the start of measuring."""
    by_run = {run.pk: run for run in runs}
    series = SampleSeries.objects.filter(run__in=runs, channel=channel).order_by("run__number", "role")
    order = {run.pk: position for position, run in enumerate(runs)}
    found = sorted(series, key=lambda line: (order[line.run_id], line.role != "sut"))
    lines = [_overlay_line(line, by_run[line.run_id], part) for line in found]
    return {"lines": lines, "thinned": is_thinned(found, lines)}


def _overlay_line(line: SampleSeries, run: Run, part: Part | None) -> dict[str, Any]:
    return channel_json(
        line, part, run=run.number, name=f"{run_name(run)}, {'SUT' if line.role == 'sut' else line.role}"
    )
