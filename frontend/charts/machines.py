"""The set-ups of an experiment at each kernel, OS or memory size, for the chart of means with their repetitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.analysis.machine_factors import Machines, Split
from experiments.registry.metrics.vocabulary import MetricSpec
from frontend.charts.metric import metric_json


def with_charts(machines: Machines, metric: MetricSpec) -> list[tuple[Split, str, dict[str, Any]]]:
    """Each split with the id and the JSON of charts/ab.js."""
    return [
        (split, f"machines-{number}", {"metric": metric_json(metric), "variants": list(_bars(split))})
        for number, split in enumerate(machines.splits, start=1)
    ]


def _bars(split: Split) -> Iterator[dict[str, Any]]:
    """A bar for each set-up and level; the first is the one that the others are seen against."""
    first = True
    for row in split.rows:
        for level, cell in zip(split.levels, row.cells, strict=True):
            if cell.mean is None:
                continue
            yield {
                "name": ", ".join(filter(None, (row.setup, row.alike, level.name))),
                "is_baseline": first,
                "mean": cell.mean.value,
                "low": cell.mean.ci95[0] if cell.mean.ci95 else None,
                "high": cell.mean.ci95[1] if cell.mean.ci95 else None,
                "repetitions": [{"number": number, "value": value} for number, value in cell.repetitions],
            }
            first = False
