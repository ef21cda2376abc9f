"""What is shown of a bisection: the first bad one, its interval, and the steps that led there."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from experiments.analysis.number_text import percent_with_interval
from experiments.asking.bisections.functions import functions_behind
from experiments.asking.bisections.reading import steps_of
from experiments.models import Bisection, BisectionStep
from experiments.registry.errors import Conflict
from experiments.registry.metrics.own_metrics import metric_named
from experiments.telling.reports.plots import ROW, TOP, Axis, PlotRow, RowPlot, changes_plot
from experiments.telling.sharing import wording
from experiments.telling.sharing.sheet import Sheet, Table, Tone

MOST_ROWS = 30
MOST_LABEL_CHARS = 30


def bisection_sheet(bisection: Bisection) -> Sheet:
    """The bisection as it is now. Conflict while no step is over."""
    steps = [one for one in steps_of(bisection) if one.result]
    if not steps:
        raise Conflict("The bisection has no step that is over; share it when it has.")
    names = bisection.names
    metric = metric_named(bisection.team_id, bisection.metric)
    plot = _plot(bisection, steps)
    kind = (
        f"values of the recipe's parameter {bisection.parameter}" if bisection.parameter else "versions of the recipe"
    )
    return Sheet(
        title=f"Bisection: {bisection.name}",
        sentence=bisection.sentence or "The bisection is not over, so the first bad one is not known yet.",
        caution="",
        tone=_tone(bisection),
        badge_label="first bad one",
        badge_value=_badge(bisection),
        facts=wording.facts(
            ("Question", f"Which of {len(names)} from {names[0]} to {names[-1]} is the first that is worse?"),
            ("Candidates are", kind),
            ("Judged by", f"{wording.metric_head(metric)}, margin ±{bisection.margin_ratio * 100:g} %"),
            ("State", str(bisection.get_state_display()).capitalize()),
            ("Ended", wording.moment_text(bisection.finished_at) if bisection.finished_at else None),
            *wording.set_up(bisection),
        ),
        plots=(plot,) if plot else (),
        sections=(_steps(bisection, steps), *_functions(bisection), _candidates(bisection, steps)),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _found(bisection: Bisection) -> str | None:
    """The first bad one, when exactly that is known."""
    if bisection.state == Bisection.State.FINISHED and bisection.high is not None:
        return bisection.names[bisection.high]
    return None


def _tone(bisection: Bisection) -> Tone:
    return "bad" if _found(bisection) else "neutral"


def _badge(bisection: Bisection) -> str:
    if name := _found(bisection):
        return name[:MOST_LABEL_CHARS]
    return "not over" if bisection.state == Bisection.State.RUNNING else "not found"


def _change(step: BisectionStep) -> str:
    if step.estimate_pct is None:
        return "—"
    low_pct, high_pct = step.ci95_low_pct, step.ci95_high_pct
    return percent_with_interval(
        step.estimate_pct, None if low_pct is None or high_pct is None else (low_pct, high_pct)
    )


def _plot(bisection: Bisection, steps: Sequence[BisectionStep]) -> RowPlot | None:
    """The change of each candidate that was compared, with its interval, in the order of the candidates."""
    known = sorted((one for one in steps if one.estimate_pct is not None), key=lambda one: one.index)
    if not known:
        return None
    margin_pct = bisection.margin_ratio * 100
    values = [0.0, margin_pct, -margin_pct]
    values += [v for one in known for v in (one.estimate_pct, one.ci95_low_pct, one.ci95_high_pct) if v is not None]
    axis = Axis(values)
    rows = [
        PlotRow(
            label=name if len(name) <= MOST_LABEL_CHARS else f"{name[: MOST_LABEL_CHARS - 1]}…",
            full_label=name,
            y=TOP + ROW * (place + 0.5),
            low_x=axis.place(one.ci95_low_pct),
            high_x=axis.place(one.ci95_high_pct),
            middle_x=axis.place(one.estimate_pct),
            title=f"{name}: {_change(one)}",
            dots=(),
            colour=2 if one.result == BisectionStep.Result.BAD else 1,
        )
        for place, one in enumerate(known[:MOST_ROWS])
        for name in [bisection.names[one.index]]
    ]
    return changes_plot(
        title=f"Change against {bisection.names[0]}, with the 95 % interval; the band is the margin",
        summary=f"{'; '.join(row.title for row in rows)}.",
        rows=rows,
        axis=axis,
        margin_pct=margin_pct,
    )


def _steps(bisection: Bisection, steps: Sequence[BisectionStep]) -> Table:
    rows = tuple(
        (
            str(one.position + 1),
            bisection.names[one.index],
            str(one.get_result_display()),
            _change(one),
            one.sentence or "—",
        )
        for one in steps
    )
    heads = ("Step", "Candidate", "Result", "Change [95 %]", "In words")
    return Table(title=f"Steps, each against {bisection.names[0]}", heads=heads, rows=rows, numbers_from=5)


def _functions(bisection: Bisection) -> tuple[Table, ...]:
    """The functions that cost more in the first bad one, where its runs were profiled."""
    behind = functions_behind(bisection)
    if behind is None or behind.missing:
        return ()
    rows = tuple((one.name, one.sentence, "yes" if one.name in behind.already else "no") for one in behind.shown)
    rows = rows or (("none shown", "—", "—"),)
    heads = ("Function", "CPU per request", "In the one before, too")
    title = f"Functions that cost more in {behind.first_bad}"
    return (Table(title=title, heads=heads, rows=rows, numbers_from=3),)


def _candidates(bisection: Bisection, steps: Sequence[BisectionStep]) -> Table:
    results = {one.index: str(one.get_result_display()) for one in steps}
    rows = tuple(
        (str(place + 1), name, "the good one" if place == 0 else results.get(place, "not compared"))
        for place, name in enumerate(bisection.names)
    )
    return Table(title="Candidates in order", heads=("#", "Candidate", "What is known"), rows=rows, numbers_from=3)
