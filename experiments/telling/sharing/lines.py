"""Lines over time as geometry, for pictures that the server draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from experiments.telling.reports.plots import (
    AXIS,
    COLOURS,
    CURVE_HEIGHT,
    CURVE_LEFT,
    LEGEND,
    RIGHT,
    TOP,
    WIDTH,
    CurvePlot,
    Line,
    Mark,
    Tick,
    ticks_between,
)

MOST_DATES = 5
"""Labels below a plot: more would overlap."""
_MINUTE_S, _DAY_S = 60.0, 86_400.0


@dataclass(frozen=True)
class PlotLine:
    """(x, y, what the dot says) in the order of x; without dots only the line is drawn."""

    label: str
    points: Sequence[tuple[float, float, str]]
    dots: bool = False


def line_plot(
    lines: Sequence[PlotLine],
    *,
    name: str,
    title: str,
    summary: str,
    y_text: Callable[[float], str],
    x_ticks: Callable[[float, float], list[tuple[float, str]]],
    from_zero: bool = False,
    rules: Sequence[tuple[float, str]] = (),
) -> CurvePlot:
    """The lines over linear axes, a legend below. There must be at least one point; rules beside them are left out."""
    xs = [x for line in lines for x, _, _ in line.points]
    ys = [y for line in lines for _, y, _ in line.points]
    left_x, right_x = min(xs), max(xs)
    low, high = (0.0 if from_zero else min(ys)), max(ys)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    low, high = (low if from_zero else low - room), high + room
    right, bottom = WIDTH - RIGHT, TOP + CURVE_HEIGHT
    span_x = right_x - left_x

    def at_x(x: float) -> float:
        # A single moment stands in the middle.
        share = (x - left_x) / span_x if span_x else 0.5
        return round(CURVE_LEFT + (right - CURVE_LEFT) * share, 1)

    def at_y(y: float) -> float:
        return round(bottom - CURVE_HEIGHT * (y - low) / (high - low), 1)

    drawn = tuple(
        Line(
            label=line.label,
            points=" ".join(f"{at_x(x)},{at_y(y)}" for x, y, _ in line.points),
            colour=index % len(COLOURS) + 1,
            legend_y=bottom + AXIS + LEGEND * index,
            marks=tuple(Mark(at_x(x), at_y(y), said) for x, y, said in line.points) if line.dots else (),
        )
        for index, line in enumerate(lines)
    )
    return CurvePlot(
        name=name,
        title=title,
        summary=summary,
        width=WIDTH,
        height=bottom + AXIS + LEGEND * len(drawn) + 4,
        left=CURVE_LEFT,
        right=right,
        top=TOP,
        bottom=bottom,
        lines=drawn,
        x_ticks=tuple(Tick(at_x(x), label) for x, label in x_ticks(left_x, right_x)),
        y_ticks=tuple(Tick(at_y(y), y_text(y)) for y in ticks_between(low, high)),
        rules=tuple(Tick(at_x(x), said) for x, said in rules if left_x <= x <= right_x),
    )


def plain_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Numbers that name their own unit in the title of the plot."""
    return [(at, f"{at:,.6g}") for at in ticks_between(low, high)]


def second_ticks(low_s: float, high_s: float) -> list[tuple[float, str]]:
    """Seconds from the start of measuring."""
    return [(at_s, f"{at_s:g} s") for at_s in ticks_between(low_s, high_s)]


def date_ticks(low_s: float, high_s: float) -> list[tuple[float, str]]:
    """Seconds since 1970 as UTC dates, with the time where the span is short."""
    span_s = high_s - low_s
    form = "%Y-%m-%d" if span_s > MOST_DATES * _DAY_S else "%m-%d %H:%M"
    if span_s < _MINUTE_S:
        return [((low_s + high_s) / 2, _moment(low_s, "%Y-%m-%d %H:%M"))]
    inset_s = span_s * 0.06
    step_s = (span_s - 2 * inset_s) / (MOST_DATES - 1)
    return [(at, _moment(at, form)) for at in (math.floor(low_s + inset_s + step_s * n) for n in range(MOST_DATES))]


def _moment(at_s: float, form: str) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime(form)
