"""A report as Markdown: for a ticket, a wiki or a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from experiments.analysis.interval import Mean
from experiments.analysis.number_text import percent_with_interval
from experiments.analysis.outcomes import WORDS
from experiments.registry.documents.configuration import Difference
from experiments.registry.markdown_text import block, cell
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.telling.reports.answer import change_text
from experiments.telling.reports.rankings import ReportMap, ReportRanking
from experiments.telling.reports.reasons import Reasons
from experiments.telling.reports.report import ExperimentReport, MetricFigures, VariantCurve, VariantFigure
from experiments.telling.reports.runs import Remark

MOST_DIFFERENCES = 100
"""Rows of a table of differences; more are counted, and stand on the page of the comparison."""


def report_markdown(report: ExperimentReport, *, url: str, plots: Sequence[tuple[str, str]] = ()) -> str:
    """The whole report. `plots` are (what it shows, address of the SVG)."""
    parts = [f"# {cell(report.name)}"]
    if report.question:
        parts.append(f"**Question:** {cell(report.question)}")
    if report.hosts_before:
        parts.append(f"**The hosts:** {cell(report.hosts_before)}")
    parts += [f"**Answer:** {cell(report.answer)}", _key_facts(report, url)]
    parts += ["## Figures", *(_figures(one) for one in report.metrics)]
    parts += [f"![{cell(title)}]({address})" for title, address in plots]
    if report.changes:
        parts += ["## Verdicts", _list(change.sentence for change in report.changes)]
    if report.reasons:
        parts += ["## Why", *(_reasons(one) for one in report.reasons)]
    if report.ranking:
        parts += [f"## Ranking by {cell(report.primary.label)}", cell(report.ranking.sentence), _ranking(report)]
    if report.factor_map:
        parts += [
            f"## {' and '.join(map(cell, report.factor_map.factors))}",
            _factor_map(report.factor_map, report.primary),
        ]
    if report.limits:
        parts += ["## Which member was the limit", _list(f"{one.variant}: {one.sentence}" for one in report.limits)]
    if report.curves:
        parts += ["## Latency percentiles", _curves(report.curves, report.latency_basis)]
    parts += ["## Variants", _variants(report), "## What differed", _difference(report)]
    parts += ["## What did not count", _remarks(report.left_out, "Every finished run counts.")]
    if report.doubtful:
        parts += ["## What counts with doubt", _remarks(report.doubtful, "")]
    parts += ["## Machines and versions", _machines(report), "## How to repeat it", _repeat(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def figure_text(value: float | None, metric: MetricSpec) -> str:
    """A figure with its unit, four digits."""
    if value is None:
        return "—"
    if metric.unit == "ratio":
        return f"{value * 100:.1f} %"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
    return text if metric.unit == "count" else f"{text} {metric.unit}"


def p_text(value: float | None) -> str:
    if value is None:
        return "—"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def _key_facts(report: ExperimentReport, url: str) -> str:
    dates, people = report.dates, report.people
    facts = [
        f"state: {report.state}" + (f". {report.state_reason}" if report.state_reason else ""),
        f"asked {_time(dates.created)}" + (f" by {people.asked_by}" if people.asked_by else ""),
    ]
    if dates.first_run_started and dates.last_run_finished:
        facts.append(f"ran {_time(dates.first_run_started)} to {_time(dates.last_run_finished)}")
    if people.launched_by:
        facts.append(f"launched by {', '.join(people.launched_by)}")
    facts.append(f"report made {_time(report.made_at)} by BenchHub {report.made_by_version}")
    return "\n".join([*(f"- {cell(fact)}" for fact in facts), f"- {url}"])


def _figures(of_metric: MetricFigures) -> str:
    metric = of_metric.metric
    way = "higher is better" if metric.higher_is_better else "lower is better"
    heads = ["variant", "n", "mean", "95 % interval", "spread", "change [95 %]", "verdict", "p", "adjusted p"]
    rows = [_figure_row(metric, figure) for figure in of_metric.figures]
    title = f"### {cell(metric.label)} ({way}{', decides' if of_metric.decides else ''})"
    return f"{title}\n\n{_table(heads, rows, numbers_from=1)}"


def _figure_row(metric: MetricSpec, figure: VariantFigure) -> list[str]:
    name = f"{figure.variant} (baseline)" if figure.is_baseline else figure.variant
    mean, change = figure.mean, figure.change
    if mean is None:
        return [name, "0", *("—",) * 7]
    spread = f"{mean.cov_ratio * 100:.1f} %" if mean.cov_ratio is not None else "—"
    judged = ["—"] * 4
    if change is not None:
        adjusted = p_text(change.adjusted_p)
        adjusted += f" (of {change.family_size})" if change.adjusted_p is not None else ""
        judged = [change_text(change), WORDS[change.shown], p_text(change.p_value), adjusted]
    return [name, str(mean.n), figure_text(mean.value, metric), interval_text(mean, metric), spread, *judged]


def interval_text(mean: Mean, metric: MetricSpec) -> str:
    if mean.ci95 is None:
        return "—"
    return f"{figure_text(mean.ci95[0], metric)} to {figure_text(mean.ci95[1], metric)}"


RANKING_HEADS = ("variant", "n", "mean", "95 % interval", "against the best", "standing")


def ranking_rows(ranking: ReportRanking, metric: MetricSpec) -> list[list[str]]:
    """The lines of the ranking under RANKING_HEADS."""
    return [
        [
            f"{one.variant} (baseline)" if one.is_baseline else one.variant,
            str(one.mean.n),
            figure_text(one.mean.value, metric),
            interval_text(one.mean, metric),
            "—" if one.change_pct is None else percent_with_interval(one.change_pct, one.ci95_pct),
            one.standing,
        ]
        for one in ranking.lines
    ]


def map_rows(found: ReportMap, metric: MetricSpec) -> list[list[str]]:
    """The rows of the map: a level of the first factor, then the mean with its interval at each of the second."""
    return [[row.level, *(_cell_text(mean, metric) for mean in row.means)] for row in found.rows]


def effect_texts(found: ReportMap) -> list[str]:
    """What each factor does, in words, and what nothing can be said of."""
    said = [
        f"{one.what}: {percent_with_interval(one.change_pct, one.ci95_pct)}{f', {one.word}' if one.word else ''}."
        for one in found.effects
    ]
    return [*said, found.note] if found.note else said


def _cell_text(mean: Mean | None, metric: MetricSpec) -> str:
    if mean is None:
        return "—"
    return figure_text(mean.value, metric) + (f" [{interval_text(mean, metric)}]" if mean.ci95 else "")


def _ranking(report: ExperimentReport) -> str:
    return _table(RANKING_HEADS, ranking_rows(report.ranking, report.primary), numbers_from=1) if report.ranking else ""


def _factor_map(found: ReportMap, metric: MetricSpec) -> str:
    table = _table([" / ".join(found.factors), *found.columns], map_rows(found, metric), numbers_from=1)
    return "\n\n".join(filter(None, [table, _list(effect_texts(found))]))


def _curves(curves: Sequence[VariantCurve], basis: str) -> str:
    marks = sorted({point.percentile for curve in curves for point in curve.points})
    heads = ["percentile", *(f"{curve.variant}, ms" for curve in curves)]
    values = [{point.percentile: point.value_ms for point in curve.points} for curve in curves]
    rows = [[f"p{mark:g}", *(f"{one[mark]:,.4g}" if mark in one else "—" for one in values)] for mark in marks]
    samples = "; ".join(f"{curve.variant}: {curve.samples:,} samples of {curve.runs} runs" for curve in curves)
    note = f"Counted as {basis}. Histograms added up, as far as the samples carry. {samples}."
    return f"{_table(heads, rows, numbers_from=1)}\n\n{cell(note)}"


def _variants(report: ExperimentReport) -> str:
    heads = ["variant", "recipe", "parameters", "application", "SUT", "drivers", "runs that count"]
    rows = [
        [
            f"{one.name} (baseline)" if one.is_baseline else one.name,
            one.recipe,
            ", ".join(f"{name}={value}" for name, value in one.parameters) or "—",
            one.application,
            ", ".join([one.sut, *(f"{role} {host}" for role, host in one.members)]),
            one.drivers,
            f"{one.counted} of {one.runs}",
        ]
        for one in report.variants
    ]
    return _table(heads, rows)


def _difference(report: ExperimentReport) -> str:
    if not report.compared_runs:
        return "Two variants with a run that counts are needed to tell."
    named = zip(report.compared_variants, report.compared_runs, strict=True)
    heads = ["setting", *(f"{variant} (run {number})" for variant, number in named)]
    asked, drift = report.difference.asked, report.difference.drift
    parts = [
        f"Asked for ({len(asked)}): the recipes differ here.",
        _rows_of(heads, asked),
        f"Drift ({len(drift)}): nobody asked, yet it differs.",
        _rows_of(heads, drift),
    ]
    return "\n\n".join(part for part in parts if part)


def _reasons(reasons: Reasons) -> str:
    parts = [f"**{cell(reasons.candidate)}:** {cell(reasons.headline)}", _list(cell(one) for one in reasons.found)]
    return "\n\n".join(part for part in (*parts, " ".join(reasons.missing)) if part)


def _rows_of(heads: Sequence[str], differences: Sequence[Difference]) -> str:
    if not differences:
        return ""
    rows = [[one.path, *("—" if v is None else v for v in one.values)] for one in differences[:MOST_DIFFERENCES]]
    more = len(differences) - len(rows)
    return _table(heads, rows) + (f"\n\nand {more} more" if more else "")


def _remarks(remarks: Sequence[Remark], nothing: str) -> str:
    if not remarks:
        return nothing
    return _list(f"Run {one.number} of {one.variant}, {one.what}: {' '.join(one.sentences)}" for one in remarks)


def _machines(report: ExperimentReport) -> str:
    found = [
        f"{one.role} {one.name}: {', '.join(f'{label} {value}' for label, value in one.facts) or 'nothing is known'}"
        for one in report.machines
    ]
    return _list([*found, *(f"{label}: {value}" for label, value in report.versions)])


def _repeat(report: ExperimentReport) -> str:
    repeat = report.repeat
    parts = [f"Order: {cell(repeat.order)}; seed {repeat.seed}; {repeat.repetitions} repetitions."]
    if repeat.blocks:
        parts.append(_list(f"Block {one.block}: {', '.join(one.variants)}" for one in repeat.blocks))
    for what, command in repeat.commands:
        parts.append(f"{cell(what)}:\n\n{block(command, 'sh')}")
    parts.append(f"experiment.yaml:\n\n{block(repeat.experiment_yaml, 'yaml')}")
    parts += [f"{cell(f'{one.kind} {one.name}')}:\n\n{block(one.yaml, 'yaml')}" for one in repeat.documents]
    return "\n\n".join(parts)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers_from: int | None = None) -> str:
    right = len(heads) if numbers_from is None else numbers_from
    lines = [f"| {' | '.join(cell(head) for head in heads)} |"]
    lines.append(f"| {' | '.join('---' if at < right else '---:' for at in range(len(heads)))} |")
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {cell(item)}" for item in items)


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
