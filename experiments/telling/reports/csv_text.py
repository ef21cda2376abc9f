"""A report as CSV: one line per metric and variant, safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.telling.reports.report import ExperimentReport, MetricFigures, VariantFigure
from experiments.telling.run_list.csv_text import csv_line

COLUMNS = (
    "experiment",
    "metric",
    "unit",
    "direction",
    "decides",
    "variant",
    "is_baseline",
    "repetitions",
    "mean",
    "mean_ci95_low",
    "mean_ci95_high",
    "spread_ratio",
    "change_pct",
    "change_ci95_low_pct",
    "change_ci95_high_pct",
    "outcome",
    "p_value",
    "adjusted_p",
    "family_size",
    "looks",
    "sentence",
)


def report_csv(report: ExperimentReport) -> str:
    """All variants and metrics; what cannot be said is an empty cell."""
    rows = [_row(report, of_metric, figure) for of_metric in report.metrics for figure in of_metric.figures]
    return "".join(map(csv_line, [COLUMNS, *rows]))


def _row(report: ExperimentReport, of_metric: MetricFigures, figure: VariantFigure) -> Sequence[object]:
    metric, mean, change = of_metric.metric, figure.mean, figure.change
    mean_low, mean_high = mean.ci95 if mean and mean.ci95 else (None, None)
    low, high = change.ci95_pct if change and change.ci95_pct else (None, None)
    return (
        report.name,
        metric.name,
        metric.unit,
        metric.direction,
        "yes" if of_metric.decides else "no",
        figure.variant,
        "yes" if figure.is_baseline else "no",
        mean.n if mean else 0,
        mean.value if mean else None,
        mean_low,
        mean_high,
        mean.cov_ratio if mean else None,
        change.estimate_pct if change else None,
        low,
        high,
        change.outcome if change else None,
        change.p_value if change else None,
        change.adjusted_p if change else None,
        change.family_size if change and change.adjusted_p is not None else None,
        change.looks if change else None,
        change.sentence if change else None,
    )
