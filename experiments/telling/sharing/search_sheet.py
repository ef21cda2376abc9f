"""What is shown of a search for the sustainable rate: the answer, its trials and the latency at each rate."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from experiments.asking.searches.reading import latency_of, objective_text, trials_of
from experiments.models import CapacitySearch, SearchTrial
from experiments.registry.errors import Conflict
from experiments.registry.metrics.vocabulary import METRICS, MetricSpec
from experiments.telling.reports.plots import CurvePlot
from experiments.telling.sharing import wording
from experiments.telling.sharing.lines import PlotLine, line_plot, plain_ticks
from experiments.telling.sharing.sheet import Sheet, Table, Tone

_NO_INTERVAL = "A rate search gives an interval only when it has ended."
_RESULTS = (("pass", "sustained"), ("fail", "not sustained"), ("invalid", "does not count"))


def search_sheet(search: CapacitySearch) -> Sheet:
    """The search as it is now. Conflict while no trial is over."""
    trials = [one for one in trials_of(search) if one.result]
    if not trials:
        raise Conflict("The rate search has no trial that is over; share it when it has.")
    metric = METRICS[search.objective_metric]
    plot = _plot(search, trials, metric)
    return Sheet(
        title=f"Sustainable rate: {search.name}",
        sentence=search.sentence or "The rate search is not over, so there is no answer yet.",
        caution=_caution(search),
        tone=_tone(search),
        badge_label=f"rate with {wording.short_name(metric)} ≤ {search.objective_ms:g} ms",
        badge_value=_badge(search),
        facts=wording.facts(
            ("Objective", f"{objective_text(search)}, no error, at least 99 % of the offered rate"),
            ("State", str(search.get_state_display()).capitalize()),
            ("Ended", wording.moment_text(search.finished_at) if search.finished_at else None),
            *wording.set_up(search),
            ("Started with", f"{search.start_low_rps:,.6g} and {search.start_high_rps:,.6g} requests/s"),
            ("Ends at", f"a width of {search.width_ratio * 100:g} %"),
        ),
        plots=(plot,) if plot else (),
        sections=(_table(search, trials, metric),),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _caution(search: CapacitySearch) -> str:
    return "" if search.state == CapacitySearch.State.FINISHED else _NO_INTERVAL


def _tone(search: CapacitySearch) -> Tone:
    return "good" if search.state == CapacitySearch.State.FINISHED and search.low_rps else "neutral"


def _badge(search: CapacitySearch) -> str:
    if search.state == CapacitySearch.State.FINISHED and search.low_rps:
        return f"{search.low_rps:,.6g} requests/s"
    return "not over" if search.state == CapacitySearch.State.RUNNING else "no answer"


def _plot(search: CapacitySearch, trials: Sequence[SearchTrial], metric: MetricSpec) -> CurvePlot | None:
    """A dot per trial, joined in the order of their rates."""
    lines = []
    for result, said in _RESULTS:
        points = sorted(
            (one.rate_rps, latency_ms, f"run #{one.run.number}: {wording.value_text(latency_ms, metric)}, {said}")
            for one in trials
            if one.result == result and (latency_ms := latency_of(search, one.run)) is not None
        )
        if points:
            lines.append(PlotLine(said, points, dots=True))
    if not lines:
        return None
    return line_plot(
        lines,
        name="trials",
        title=f"{metric.label} in ms at each offered rate in requests/s",
        summary=f"{len(trials)} trials; the objective is {objective_text(search)}.",
        y_text=lambda value: f"{value:,.6g}",
        x_ticks=plain_ticks,
        from_zero=True,
    )


def _table(search: CapacitySearch, trials: Sequence[SearchTrial], metric: MetricSpec) -> Table:
    said = dict(_RESULTS)
    reached = METRICS["throughput_rps"]
    rows = tuple(
        (
            str(one.position + 1),
            said[one.result],
            one.reason or "—",
            f"{one.rate_rps:,.6g}",
            wording.value_text(one.run.throughput_rps, reached),
            wording.value_text(latency_of(search, one.run), metric),
        )
        for one in trials
    )
    heads = ("Trial", "Result", "Why", "Offered, requests/s", "Reached", metric.label)
    return Table(title="Trials", heads=heads, rows=rows, numbers_from=3)
