"""What is shown of an experiment: its report without people, addresses and the documents to repeat it with."""

from __future__ import annotations

from django.utils import timezone

from experiments.analysis.outcomes import WORDS
from experiments.models import Experiment
from experiments.registry.errors import Conflict
from experiments.telling.reports.answer import Change, change_text
from experiments.telling.reports.markdown import (
    RANKING_HEADS,
    effect_texts,
    figure_text,
    interval_text,
    map_rows,
    p_text,
    ranking_rows,
)
from experiments.telling.reports.plots import plots_of
from experiments.telling.reports.report import ExperimentReport, MetricFigures, VariantFigure, report_of
from experiments.telling.sharing import wording
from experiments.telling.sharing.sheet import Fact, Sentences, Sheet, Table

MOST_NAME_CHARS = 28


def experiment_sheet(experiment: Experiment) -> Sheet:
    """The report as it stands. Conflict when nothing has been launched: there is nothing to show."""
    if not experiment.runs.kept().exists():
        raise Conflict("The experiment has no run yet; there is nothing to show before it is launched.")
    report = report_of(experiment, base_url="")
    primary = [change for change in report.changes if change.metric == report.primary]
    return Sheet(
        title=report.name,
        sentence=report.answer,
        caution=_caution(report),
        tone=wording.outcome_tone(primary[0].shown) if len(primary) == 1 else "neutral",
        badge_label=_short(report.name),
        badge_value=_badge(report, primary),
        facts=_facts(report),
        plots=tuple(plots_of(report)),
        sections=tuple(_sections(report)),
        frozen_at=timezone.now(),
        made_by_version=wording.version(),
    )


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME_CHARS else f"{name[: MOST_NAME_CHARS - 1]}…"


def _caution(report: ExperimentReport) -> str:
    return "It was not finished when this was made." if report.state.lower() in ("running", "paused") else ""


def _badge(report: ExperimentReport, primary: list[Change]) -> str:
    if len(primary) != 1:
        return f"{len(primary)} candidates" if primary else "no verdict yet"
    change = primary[0]
    return f"{wording.short_name(change.metric)} {change_text(change)}, {WORDS[change.shown]}"


def _facts(report: ExperimentReport) -> tuple[Fact, ...]:
    dates = report.dates
    ran = None
    if dates.first_run_started:
        ran = f"{wording.moment_text(dates.first_run_started)} to {wording.moment_text(dates.last_run_finished)}"
    deciding = ", ".join(one.metric.label for one in report.metrics if one.decides)
    return wording.facts(
        ("Question", report.question),
        ("State", report.state.capitalize()),
        ("Ran", ran),
        ("Decides", f"{deciding}, margin ±{report.margin_ratio * 100:g} %"),
        ("Repetitions", f"{report.repeat.repetitions} of each variant, {report.repeat.order}"),
    )


def _sections(report: ExperimentReport) -> list[Table | Sentences]:
    found: list[Table | Sentences] = []
    if report.changes:
        verdicts = tuple(_verdict_row(change) for change in report.changes)
        titles = ("Verdict", "In words", "p", "Adjusted p")
        found.append(Table(title="Verdicts", heads=titles, rows=verdicts, numbers_from=2))
    if report.ranking:
        rows: tuple[tuple[str, ...], ...] = tuple(map(tuple, ranking_rows(report.ranking, report.primary)))
        heads: tuple[str, ...] = tuple(head.capitalize() for head in RANKING_HEADS)
        title = f"Ranking by {report.primary.label}"
        found.append(Table(title=title, heads=heads, rows=rows, note=report.ranking.sentence))
    if one := report.factor_map:
        rows = tuple(map(tuple, map_rows(one, report.primary)))
        heads = (" / ".join(one.factors), *one.columns)
        note = " ".join(effect_texts(one))
        found.append(Table(title=f"{report.primary.label} by two factors", heads=heads, rows=rows, note=note))
    if report.limits:
        said = tuple(f"{one.variant}: {one.sentence}" for one in report.limits)
        found.append(Sentences(title="Which member was the limit", sentences=said))
    found += [_figures(one) for one in report.metrics]
    if report.curves:
        found.append(_curves(report))
    found.append(_variants(report))
    if (table := wording.difference_table(report.difference, report.compared_variants)) is not None:
        found.append(table)
    if report.left_out:
        said = tuple(
            f"Run #{one.number} of {one.variant}, {one.what}: {' '.join(one.sentences)}" for one in report.left_out
        )
        found.append(Sentences(title="What did not count, and why", sentences=said))
    if report.doubtful:
        said = tuple(f"Run #{one.number} of {one.variant}: {' '.join(one.sentences)}" for one in report.doubtful)
        found.append(Sentences(title="Counted, but with doubt", sentences=said))
    machines = tuple(
        f"{one.role}: {', '.join(f'{label} {value}' for label, value in one.facts)}"
        for one in report.machines
        if one.facts
    )
    versions = tuple(f"{label}: {value}" for label, value in report.versions)
    if machines or versions:
        found.append(Sentences(title="Machines and versions", sentences=(*dict.fromkeys(machines), *versions)))
    return found


def _verdict_row(change: Change) -> tuple[str, ...]:
    return (WORDS[change.shown], change.sentence, p_text(change.p_value), p_text(change.adjusted_p))


def _figures(of_metric: MetricFigures) -> Table:
    rows = tuple(_figure_row(of_metric, figure) for figure in of_metric.figures)
    title = f"{wording.metric_head(of_metric.metric)}{', decides' if of_metric.decides else ''}"
    return Table(title=title, heads=("Variant", "n", "Mean", "95 % interval", "Spread", "Change [95 %]"), rows=rows)


def _figure_row(of_metric: MetricFigures, figure: VariantFigure) -> tuple[str, ...]:
    name = f"{figure.variant} (baseline)" if figure.is_baseline else figure.variant
    mean = figure.mean
    if mean is None:
        return (name, "0", "—", "—", "—", "—")
    spread = f"{mean.cov_ratio * 100:.1f} %" if mean.cov_ratio is not None else "—"
    change = change_text(figure.change) if figure.change else "—"
    metric = of_metric.metric
    return (name, str(mean.n), figure_text(mean.value, metric), interval_text(mean, metric), spread, change)


def _curves(report: ExperimentReport) -> Table:
    marks = sorted({point.percentile for curve in report.curves for point in curve.points})
    values = [{point.percentile: point.value_ms for point in curve.points} for curve in report.curves]
    rows = tuple((f"p{mark:g}", *(f"{one[mark]:,.4g} ms" if mark in one else "—" for one in values)) for mark in marks)
    samples = ", ".join(f"{curve.variant} {curve.samples:,}" for curve in report.curves)
    note = f"Counted as {report.latency_basis}; histograms of all repetitions added up. Samples: {samples}."
    heads = ("Percentile", *(curve.variant for curve in report.curves))
    return Table(title="Latency percentiles", heads=heads, rows=rows, note=note)


def _variants(report: ExperimentReport) -> Table:
    rows = tuple(
        (
            f"{one.name} (baseline)" if one.is_baseline else one.name,
            one.recipe,
            ", ".join(f"{name}={value}" for name, value in one.parameters) or "—",
            one.application,
            f"{one.counted} of {one.runs}",
        )
        for one in report.variants
    )
    heads = ("Variant", "Recipe", "Parameters", "Application", "Runs that count")
    return Table(title="Variants", heads=heads, rows=rows, numbers_from=4)
