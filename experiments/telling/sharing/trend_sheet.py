"""What is shown of a trend: the history of one metric of one series, as a chart shows it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from experiments.analysis.number_text import signed_percent
from experiments.judging.alerts.triage import change_points
from experiments.judging.alerts.wording import sentence
from experiments.judging.comparing.history import MetricHistory, Point, thinned_history
from experiments.judging.comparing.lines import line_names
from experiments.models import Alert, Series
from experiments.registry.errors import Conflict
from experiments.telling.reports.plots import CurvePlot
from experiments.telling.sharing import wording
from experiments.telling.sharing.lines import PlotLine, date_ticks, line_plot
from experiments.telling.sharing.sheet import Sentences, Sheet, Table, Tone

MOST_CHANGES, MOST_LINES, MOST_ROWS = 20, 8, 100


def trend_sheet(
    series: Series, metric: str, *, recipe: str = "", since: datetime | None = None, until: datetime | None = None
) -> Sheet:
    """The history of the metric. RequestError when there is no such metric, Conflict when there is no run."""
    history = thinned_history(series.team, series.fingerprint, metric, recipe=recipe, since=since, until=until)
    if not history.points:
        raise Conflict("No run that counts is in this range.")
    spec, points = history.metric, sorted(history.points, key=lambda point: (point.at, point.number))
    numbers = {point.number for point in points}
    found = change_points(series.team, [series.fingerprint], metric, recipe)
    changes = [one for one in found if one.run_after is None or history.thinned or one.run_after.number in numbers]
    last = points[-1]
    latest = wording.value_text(last.value, spec)
    return Sheet(
        title=f"{spec.label} over time: {series.title}",
        sentence=f"Latest value {latest} (run #{last.number}, {wording.moment_text(last.at)}). {_latest(changes)}",
        caution="Points between those shown were left out." if history.thinned else "",
        tone=_tone(changes),
        badge_label=wording.short_name(spec),
        badge_value=f"{latest}{_badge(changes)}",
        facts=wording.facts(
            ("Metric", wording.metric_head(spec)),
            ("Application", series.application),
            ("Workload", series.workload),
            ("Load tool", series.tool),
            ("Latency is", series.latency_basis.replace("_", " ")),
            ("Recipe", recipe),
            ("Points shown", f"{len(points)} of {sum(len(point.runs) for point in points)} runs"),
            ("Range", f"{wording.moment_text(points[0].at)} to {wording.moment_text(last.at)}"),
        ),
        plots=(_plot(history, changes),),
        sections=tuple(_sections(history, changes)),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _latest(changes: Sequence[Alert]) -> str:
    return sentence(changes[-1]) if changes else "No change point was found."


def _tone(changes: Sequence[Alert]) -> Tone:
    if not changes or changes[-1].triage in (Alert.Triage.EXPECTED, Alert.Triage.FIXED):
        return "neutral"
    return "bad" if changes[-1].worse else "good"


def _badge(changes: Sequence[Alert]) -> str:
    if not changes or changes[-1].change_ratio is None:
        return ""
    what = {"bad": "regression", "good": "improvement"}.get(_tone(changes), "change")
    return f", {what} {signed_percent(changes[-1].change_ratio * 100)}"


def _plot(history: MetricHistory, changes: Sequence[Alert]) -> CurvePlot:
    spec = history.metric
    by_line: dict[str, list[Point]] = {}
    for name, point in zip(line_names(history.points, unnamed="no recipe"), history.points, strict=True):
        by_line.setdefault(name, []).append(point)
    # The lines with the most runs have a colour of their own.
    ordered = sorted(by_line, key=lambda name: -len(by_line[name]))
    groups = {name: by_line[name] for name in ordered[: MOST_LINES - 1]}
    if rest := [point for name in ordered[MOST_LINES - 1 :] for point in by_line[name]]:
        groups["others"] = rest
    lines = [
        PlotLine(
            name,
            [
                (point.at.timestamp(), point.value, f"run #{point.number}: {wording.value_text(point.value, spec)}")
                for point in sorted(points, key=lambda one: one.at)
            ],
            dots=True,
        )
        for name, points in groups.items()
    ]
    unit = "%" if spec.unit == "ratio" else spec.unit
    return line_plot(
        lines,
        name=spec.name.replace(".", "_"),
        title=f"{spec.label}, {unit}{'; dashed: change points' if changes else ''}",
        summary=f"{len(history.points)} points.",
        y_text=lambda value: f"{value * 100:g}" if spec.unit == "ratio" else f"{value:,.6g}",
        x_ticks=date_ticks,
        rules=[(one.after_at_s, sentence(one)) for one in changes[-MOST_CHANGES:] if one.after_at_s is not None],
    )


def _sections(history: MetricHistory, changes: Sequence[Alert]) -> list[Table | Sentences]:
    found: list[Table | Sentences] = []
    if changes:
        said = tuple(f"{sentence(one)} ({one.get_triage_display()})" for one in changes[-MOST_CHANGES:][::-1])
        found.append(Sentences(title="Change points, the latest first", sentences=said))
    shown = sorted(history.points, key=lambda point: (point.at, point.number))[-MOST_ROWS:][::-1]
    rows = tuple(
        (
            f"#{point.number}" if len(point.runs) == 1 else f"#{point.number} and {len(point.runs) - 1} more",
            wording.moment_text(point.at),
            point.recipe or "—",
            point.validity,
            wording.value_text(point.value, history.metric),
            "" if point.spread is None else wording.value_text(point.spread, history.metric),
        )
        for point in shown
    )
    note = f"The latest {len(shown)} of {len(history.points)}." if len(shown) < len(history.points) else ""
    heads = ("Run", "Ended", "Recipe", "Validity", history.metric.label, "Spread")
    found.append(Table(title="Runs", heads=heads, rows=rows, note=note, numbers_from=4))
    return found
