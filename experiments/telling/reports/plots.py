"""The plots of a report as geometry: numbers become places on a sheet, which a template draws as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.percentiles import MARKS
from experiments.telling.reports.answer import change_text
from experiments.telling.reports.markdown import figure_text
from experiments.telling.reports.report import ExperimentReport, MetricFigures, VariantCurve

WIDTH, LEFT, RIGHT, TOP, ROW, AXIS = 720.0, 230.0, 24.0, 12.0, 34.0, 34.0
CURVE_HEIGHT, CURVE_LEFT, LEGEND = 260.0, 64.0, 20.0
LABEL_CHARS, NAME_CHARS = 30, 16
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b8669b", "#c28500", "#3a9fd6", "#a39a00", "#3b4250")
"""Okabe-Ito, darkened where it would be too light on paper; a page may replace them by its theme's."""


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Dot:
    x: float
    title: str


@dataclass(frozen=True)
class PlotRow:
    """One line of a plot: an interval, its middle, and single points; None where there is nothing to draw."""

    label: str
    full_label: str
    y: float
    low_x: float | None
    high_x: float | None
    middle_x: float | None
    title: str
    dots: tuple[Dot, ...]
    colour: int

    @property
    def hex(self) -> str:
        return COLOURS[self.colour - 1]


@dataclass(frozen=True)
class RowPlot:
    """Rows over one axis. `zero_x` is a line to compare with, `band` the stretch around it that does not matter."""

    name: str
    title: str
    summary: str
    unit: str
    width: float
    height: float
    bottom: float
    left: float
    right: float
    rows: tuple[PlotRow, ...]
    ticks: tuple[Tick, ...]
    zero_x: float | None
    band: tuple[float, float] | None

    @property
    def band_width(self) -> float:
        return self.band[1] - self.band[0] if self.band else 0.0


@dataclass(frozen=True)
class Mark:
    """A point of a line that is drawn as a dot of its own."""

    x: float
    y: float
    title: str


@dataclass(frozen=True)
class Line:
    label: str
    points: str
    colour: int
    legend_y: float
    marks: tuple[Mark, ...] = ()

    @property
    def hex(self) -> str:
        return COLOURS[self.colour - 1]


@dataclass(frozen=True)
class CurvePlot:
    """Lines over two axes. `rules` are places on the x axis that are marked from top to bottom."""

    name: str
    title: str
    summary: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    rules: tuple[Tick, ...] = ()


Plot = RowPlot | CurvePlot


def plots_of(report: ExperimentReport) -> list[Plot]:
    """The repetitions of each metric that decides; the changes and the percentile curves where there are any."""
    found: list[Plot] = [_repetitions(report, one) for one in report.metrics if one.decides]
    if any(change.estimate_pct is not None for change in report.changes):
        found.append(_changes(report))
    if report.curves:
        title = f"Latency by percentile ({report.latency_basis}), all repetitions of a variant together"
        found.append(percentile_plot(report.curves, title=title))
    return found


def ticks_between(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers (1, 2, 2.5 or 5 times a power of ten) from `low` to `high`."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [round(at * step, 12) for at in range(first, math.floor(high / step + 1e-9) + 1)]


def _repetitions(report: ExperimentReport, of_metric: MetricFigures) -> RowPlot:
    metric = of_metric.metric
    known = [one for one in report.repetitions if metric.name in one.figures]
    values = [one.figures[metric.name] for one in known]
    values += [v for one in of_metric.figures if one.mean and one.mean.ci95 for v in one.mean.ci95]
    axis = Axis(values)
    rows = []
    for index, one in enumerate(of_metric.figures):
        mean = one.mean
        low, high = mean.ci95 if mean and mean.ci95 else (None, None)
        text = figure_text(mean.value if mean else None, metric)
        rows.append(
            PlotRow(
                label=_short(one.variant),
                full_label=one.variant,
                y=TOP + ROW * (index + 0.5),
                low_x=axis.place(low),
                high_x=axis.place(high),
                middle_x=axis.place(mean.value if mean else None),
                title=f"{one.variant}: mean {text}",
                dots=tuple(
                    Dot(axis.at(run.figures[metric.name]), f"run {run.number}: {_exact(run.figures[metric.name])}")
                    for run in known
                    if run.variant == one.variant
                ),
                colour=index % len(COLOURS) + 1,
            )
        )
    means = ", ".join(
        f"{one.variant} {figure_text(one.mean.value if one.mean else None, metric)}" for one in of_metric.figures
    )
    return row_plot(
        name=metric.name,
        title=f"{metric.label}: every repetition, the mean and its 95 % interval",
        summary=f"Means: {means}.",
        unit="%" if metric.unit == "ratio" else metric.unit,
        rows=rows,
        ticks=tuple(
            Tick(axis.at(t), f"{t * 100:g}" if metric.unit == "ratio" else f"{t:,g}" if abs(t) < 1e6 else f"{t:,.0f}")
            for t in axis.ticks
        ),
    )


def _changes(report: ExperimentReport) -> RowPlot:
    shown = [change for change in report.changes if change.estimate_pct is not None]
    alone = len({change.candidate for change in shown}) == 1
    who = f"{shown[0].candidate} against" if alone else "Change against"
    margin_pct = report.margin_ratio * 100
    values = [0.0, margin_pct, -margin_pct]
    values += [v for one in shown for v in (one.estimate_pct, *(one.ci95_pct or ())) if v is not None]
    axis = Axis(values)
    rows = []
    for index, one in enumerate(shown):
        low, high = one.ci95_pct or (None, None)
        label = one.metric.label if alone else f"{_short(one.candidate, NAME_CHARS)}: {one.metric.label}"
        full_label = f"{one.candidate}: {one.metric.label}"
        rows.append(
            PlotRow(
                label=_short(label),
                full_label=full_label,
                y=TOP + ROW * (index + 0.5),
                low_x=axis.place(low),
                high_x=axis.place(high),
                middle_x=axis.place(one.estimate_pct),
                title=f"{full_label}: {change_text(one)}",
                dots=(),
                colour=1 if one.decides else 8,
            )
        )
    summary = "; ".join(f"{row.full_label} {change_text(one)}" for row, one in zip(rows, shown, strict=True))
    title = f"{who} {shown[0].baseline}, with the 95 % interval; the band is the margin of ±{margin_pct:g} %"
    return changes_plot(title=title, summary=f"{summary}.", rows=rows, axis=axis, margin_pct=margin_pct)


def changes_plot(
    *, title: str, summary: str, rows: Sequence[PlotRow], axis: Axis, margin_pct: float | None = None
) -> RowPlot:
    """Changes in percent around 0, with the margin as a band where there is one."""
    return row_plot(
        name="changes",
        title=title,
        summary=summary,
        unit="%",
        rows=rows,
        ticks=tuple(Tick(axis.at(t), f"{t:+g}" if t else "0") for t in axis.ticks),
        zero_x=axis.at(0.0),
        band=None if margin_pct is None else (axis.at(-margin_pct), axis.at(margin_pct)),
    )


def row_plot(
    *,
    name: str,
    title: str,
    summary: str,
    unit: str,
    rows: Sequence[PlotRow],
    ticks: tuple[Tick, ...],
    zero_x: float | None = None,
    band: tuple[float, float] | None = None,
) -> RowPlot:
    """The rows below each other over one axis."""
    bottom = TOP + ROW * len(rows)
    return RowPlot(
        name, title, summary, unit, WIDTH, bottom + AXIS, bottom, LEFT, WIDTH - RIGHT, tuple(rows), ticks, zero_x, band
    )


def percentile_plot(curves: Sequence[VariantCurve], *, title: str) -> CurvePlot:
    """Latency by percentile, the percentile on a logarithmic axis of 1/(1 - p), the latency on a logarithmic one."""
    right, top = WIDTH - RIGHT, TOP
    bottom = top + CURVE_HEIGHT
    values = [point.value_ms for curve in curves for point in curve.points if point.value_ms > 0]
    low, high = math.log10(min(values)), math.log10(max(values))
    low, high = (low, high) if high - low > 0.2 else (low - 0.1, high + 0.1)
    last = max(_tail(point.percentile) for curve in curves for point in curve.points)

    def x(percentile: float) -> float:
        return round(CURVE_LEFT + (right - CURVE_LEFT) * _tail(percentile) / last, 1)

    def y(value_ms: float) -> float:
        return round(bottom - (bottom - top) * (math.log10(value_ms) - low) / (high - low), 1)

    lines = tuple(
        Line(
            f"{curve.variant} ({curve.samples:,} samples)",
            " ".join(f"{x(point.percentile)},{y(point.value_ms)}" for point in curve.points if point.value_ms > 0),
            index % len(COLOURS) + 1,
            bottom + AXIS + LEGEND * index,
        )
        for index, curve in enumerate(curves)
    )
    marks = [mark for mark in (50, 90, 99, 99.9, 99.99, 99.999) if mark in MARKS and _tail(mark) <= last + 1e-9]
    steps = [factor * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for factor in (1, 2, 5)]
    tails = ", ".join(
        f"{curve.variant} p{curve.points[-1].percentile:g} {curve.points[-1].value_ms:,.4g} ms" for curve in curves
    )
    return CurvePlot(
        name="percentiles",
        title=title,
        summary=f"{tails}.",
        width=WIDTH,
        height=bottom + AXIS + LEGEND * len(lines) + 4,
        left=CURVE_LEFT,
        right=right,
        top=top,
        bottom=bottom,
        lines=lines,
        x_ticks=tuple(Tick(x(mark), f"p{mark:g}") for mark in marks),
        y_ticks=tuple(Tick(y(v), f"{v:g} ms") for v in steps if low - 1e-9 <= math.log10(v) <= high + 1e-9),
    )


def _tail(percentile: float) -> float:
    """Nines: 1 for p90, 2 for p99."""
    return -math.log10(1 - percentile / 100)


class Axis:
    """Values to places between the margins of the sheet, with some room on both sides."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values, default=0.0), max(values, default=0.0)
        room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
        self._low, self._high = low - room, high + room
        self.ticks = ticks_between(self._low, self._high) if values else []

    def at(self, value: float) -> float:
        return round(LEFT + (WIDTH - RIGHT - LEFT) * (value - self._low) / (self._high - self._low), 1)

    def place(self, value: float | None) -> float | None:
        return None if value is None else self.at(value)


def _short(label: str, most: int = LABEL_CHARS) -> str:
    return label if len(label) <= most else f"{label[: most - 1]}…"


def _exact(value: float) -> str:
    return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
