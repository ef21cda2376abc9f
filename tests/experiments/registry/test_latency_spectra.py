"""Histograms are kept when a run ends, and several runs' are added up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents import events as e
from agents.results.spectrum import Spectrum
from experiments.asking.intake.imports import import_reports
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import LatencySpectrum, Member, Run
from experiments.registry.runs.latency_spectra import curves_of, merged_curves
from frontend.charts.percentiles import percentiles_json
from tests.experiments.finished import finish_next, report, whole_run

CASES = Path(__file__).parents[2] / "agents/cases/wrk2"
FAST = Spectrum((1.0, 2.0), (900, 1_000), exact=True)
SLOW = Spectrum((1.0, 20.0), (900, 1_000), exact=True)


def finished(admin: Member, stock: dict[str, Any], spectrum: Spectrum | None, **figures: Any) -> Run:
    launch_run(admin, Choice(**stock))
    return finish_next(
        replace(event, spectrum=spectrum, report=report(**figures)) if isinstance(event, e.LoadReported) else event
        for event in whole_run()
    )


def test_the_end_of_a_run_keeps_its_histogram(admin: Member, stock: dict[str, Any]) -> None:
    run = finished(admin, stock, FAST)
    kept = LatencySpectrum.objects.get(run=run)
    assert (kept.values_ms, kept.counts, kept.exact) == ([1.0, 2.0], [900, 1_000], True)


def test_an_import_keeps_its_histogram(admin: Member) -> None:
    path = next(path for path in sorted(CASES.glob("*.txt")) if "Detailed Percentile" in path.read_text())
    (run,) = import_reports(admin, kind="wrk2", text=path.read_text())
    curve = curves_of([run])[run.pk]
    assert curve.samples == LatencySpectrum.objects.get(run=run).counts[-1]
    assert curve.points


def test_counts_are_added_and_runs_without_them_named(admin: Member, stock: dict[str, Any]) -> None:
    runs = [finished(admin, stock, spectrum) for spectrum in (FAST, SLOW, None)]
    merged = merged_curves({7: runs, 8: runs[2:]})
    assert set(merged) == {7}
    assert (merged[7].runs, merged[7].left_out, merged[7].curve.samples) == ((1, 2), (3,), 2_000)
    points = {point.percentile: point.value_ms for point in merged[7].curve.points}
    assert (points[90.0], points[95.0], points[99.5]) == (1.0, 2.0, 20.0)  # means would be 1, 11 and 11


def test_a_chart_shows_only_what_so_many_samples_support(admin: Member, stock: dict[str, Any]) -> None:
    figures = {"latency_p50_ms": 1.1, "latency_p99_ms": 2.1, "latency_p99.9_ms": 3.1, "latency_p100_ms": 9.9}
    with_one = finished(admin, stock, FAST, **figures)
    without = finished(admin, stock, None, **figures)
    first, second = percentiles_json([with_one, without])["runs"]
    points = {point["percentile"]: point["ms"] for point in first["points"]}
    assert (points[50.0], points[99.0]) == (1.1, 2.1)  # as the tool printed them
    assert points[95.0] == 2.0
    assert max(points) == 99.0  # 1,000 samples
    assert [point["percentile"] for point in second["points"]] == [50.0, 99.0, 99.9]  # 10,000 requests
