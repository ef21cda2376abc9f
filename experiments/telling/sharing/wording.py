"""Texts that the sheets share: figures, hosts, colours of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from django.conf import settings

from agents.base.redaction import masked
from experiments.models import Bisection, CapacitySearch, Host, Run
from experiments.registry.documents.configuration import ConfigurationDiff
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.latency_spectra import curves_of
from experiments.telling.reports.markdown import figure_text
from experiments.telling.reports.plots import CurvePlot, percentile_plot
from experiments.telling.reports.report import VariantCurve
from experiments.telling.sharing.sheet import Fact, Table, Tone

MOST_DIFFERENCES = 100
SHORT = {"throughput_rps": "throughput", "latency_p99_ms": "p99", "latency_p50_ms": "p50"}


def short_name(metric: MetricSpec) -> str:
    """p99, throughput; else the label."""
    return SHORT.get(metric.name, metric.label.lower())


def value_text(value: float | None, metric: MetricSpec) -> str:
    """A figure with its unit, shortened as a sentence wants it."""
    if value is None or metric.unit != "ms":
        return figure_text(value, metric)
    return f"{value:,.0f} ms" if abs(value) >= 100 else f"{value:.3g} ms"


def metric_head(metric: MetricSpec) -> str:
    """Throughput (higher is better)."""
    return f"{metric.label} ({metric.direction} is better)"


def outcome_tone(outcome: str) -> Tone:
    """The colour of a verdict, by what its outcome is shown as."""
    if outcome.startswith("better"):
        return "good"
    return "bad" if outcome.startswith("worse") or outcome == "fails" else "neutral"


def host_name(host: Host | None) -> str:
    """The name that the team gave the host; not told when it is its address."""
    if host is None:
        return "unknown"
    return "not told" if host.address in host.name else host.name


def set_up(inquiry: Bisection | CapacitySearch) -> tuple[tuple[str, str | None], ...]:
    """On what a search or a bisection measured, as facts."""
    parameters = ", ".join(f"{name}={masked(name, str(value))}" for name, value in inquiry.parameters.items())
    return (
        ("Application", str(inquiry.application)),
        ("Recipe", str(inquiry.recipe)),
        ("Parameters", parameters),
        ("Workload", str(inquiry.workload)),
        ("Server under test", host_name(inquiry.sut)),
        ("Driver hosts", ", ".join(host_name(host) for host in inquiry.drivers.in_order)),
    )


def moment_text(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "—"


def facts(*pairs: tuple[str, str | None]) -> tuple[Fact, ...]:
    """Those that are known."""
    return tuple(Fact(label=label, value=value) for label, value in pairs if value)


def labels_text(run: Run) -> str:
    """commit=3f2a1c, branch=main."""
    return ", ".join(f"{name}={value}" for name, value in sorted(run.labels.items()))


def percentiles_of(runs: Sequence[Run], names: Sequence[str]) -> CurvePlot | None:
    """The latency curves of the runs that have a histogram, one line each; None when none has."""
    curves = curves_of([run for run in runs if not run.hides_latency])
    shown = tuple(
        VariantCurve(name, 1, curve.samples, curve.points)
        for run, name in zip(runs, names, strict=True)
        if (curve := curves.get(run.pk)) and any(point.value_ms > 0 for point in curve.points)
    )
    return percentile_plot(shown, title="Latency by percentile") if shown else None


def difference_table(difference: ConfigurationDiff, heads: Sequence[str]) -> Table | None:
    """What the recipes changed. What else differs is counted only: it describes the team's machines, not the change."""
    if difference.empty:
        return None
    asked = difference.asked[:MOST_DIFFERENCES]
    rows = tuple(
        (one.path, *("—" if value is None else masked(one.path, value) for value in one.values)) for one in asked
    )
    said = []
    if left_out := len(difference.asked) - len(asked):
        said.append(f"Of those {left_out} more are not shown.")
    if drift := len(difference.drift):
        said.append(f"{drift} value{'s differ' if drift > 1 else ' differs'} that no recipe asked for, not shown here.")
    if not asked:
        said.insert(0, "No setting that a recipe changed differs.")
    return Table(
        title="Configuration that the recipes changed",
        heads=("Setting", *heads),
        rows=rows,
        note=" ".join(said),
        numbers_from=len(heads) + 1,
    )


def version() -> str:
    return str(settings.VERSION)
