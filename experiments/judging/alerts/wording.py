"""What an alert says in one sentence, on its page, in the API and in a mail."""

from __future__ import annotations

from datetime import UTC, datetime

from experiments.analysis.number_text import figure_text
from experiments.models import Alert, Series, Trend
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.metrics.vocabulary import label_of

SMALLEST_P = 0.0001
"""Below it the digits of a p say nothing more to anybody."""


def title(alert: Alert) -> str:
    """Short enough for a mail's subject: what happened to what."""
    series = alert.trend.series
    label = label_of(alert.trend.metric)
    if alert.kind == Alert.Kind.MISSING:
        of_what = f" of {what}" if (what := _missing_figure(alert)) else ""
        return f"No more data{of_what}: {_of(series)}"
    return f"{label} {_moved(alert)}: {_of(series)}"


def sentence(alert: Alert) -> str:
    """What happened, with numbers and units, and how certain it is. Needs the trend, its series and both runs."""
    if alert.kind == Alert.Kind.MISSING:
        last = datetime.fromtimestamp(alert.before_at_s, UTC)
        with_it = f" and has a figure of {what}" if (what := _missing_figure(alert)) else ""
        or_not = f", were invalid or gave no figure of {what}" if what else " or were invalid"
        return (
            f"The last run that counts{with_it}{_number(' is', alert, 'run_before')} ended on {last:%Y-%m-%d %H:%M} "
            f"UTC; until then there was one about every {_span(alert.interval_s)}. Look whether what launches them "
            f"still does, and whether the runs since then failed{or_not}."
        )
    spec = metric_named(alert.team_id, alert.trend.metric)
    known = f"{alert.n_before} points before and {alert.n_after} since"
    certain = f"p = {alert.p:.1g}" if alert.p and alert.p >= SMALLEST_P else f"p < {SMALLEST_P}"
    text = (
        f"{spec.label} {_moved(alert)} with run{_number('', alert, 'run_after')}: from {_figure(alert.mean_before)} to "
        f"{_figure(alert.mean_after)} {spec.unit}, means of {known} ({certain})."
    )
    if not alert.stands:
        return text + " The data since then no longer show it."
    if alert.muted:
        text += " Improvements are muted here."
    if alert.state == Alert.State.SUSPECTED:
        return text + " Suspected: too few points show the new level yet."
    return text


def trend_name(trend: Trend) -> str:
    """The series and what is special in it: a recipe, parameters."""
    parts = (trend.series.application, trend.series.workload, trend.recipe or "no recipe", trend.variation)
    return " · ".join(dict.fromkeys(part for part in parts if part))


def _of(series: Series) -> str:
    """What was measured; results sent under the name of a history have it in both places."""
    return ", ".join(dict.fromkeys((series.application, series.workload)))


def _missing_figure(alert: Alert) -> str:
    """The figure that is missing; "" for the throughput, which nearly every run has."""
    metric = alert.trend.metric
    return "" if metric == "throughput_rps" else metric_named(alert.team_id, metric).label


def _moved(alert: Alert) -> str:
    if alert.change_ratio is None:
        return "rose from 0" if alert.rose else "fell from 0"
    return f"{'rose' if alert.rose else 'fell'} by {abs(alert.change_ratio) * 100:.1f} %"


def _number(word: str, alert: Alert, side: str) -> str:
    run = getattr(alert, side)
    return f"{word} #{run.number}" if run is not None else word


def _figure(value: float | None) -> str:
    return "?" if value is None else figure_text(value)


def _span(seconds: float | None) -> str:
    hours = (seconds or 0.0) / 3600
    return f"{hours / 24:.3g} days" if hours >= 48 else f"{hours:.3g} hours"
