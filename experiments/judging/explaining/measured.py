"""The figures of both sides of a change: for each run the mean of a channel over what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

import numpy as np
from django.db.models import Q

from agents.monitors import MONITORS
from experiments.analysis.explanations import Measured
from experiments.judging.evidence.judgement import mean_in
from experiments.judging.evidence.run_channels import RUN_CHANNELS
from experiments.judging.explaining.waiting_channels import PREFIXES, Watched, watched
from experiments.models import Run, SampleSeries

_KINDS = (*(kind for monitor in MONITORS.values() for kind in monitor.channels), *RUN_CHANNELS)
_MS_PER_S = 1000.0


def measured_figures(baseline: Sequence[Run], candidate: Sequence[Run], *, paired: bool) -> list[Measured]:
    """What the monitors saw in the runs of both sides, for the channels that can explain something. One query.

    `paired`: by the runs' blocks, of which those count that both sides have.
    """
    runs = {run.pk: run for run in (*baseline, *candidate)}
    like = reduce(or_, (Q(channel__startswith=prefix) for prefix in PREFIXES))
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for series in SampleSeries.objects.filter(like, run__in=runs.keys()).iterator(chunk_size=200):
        about = watched(series.role, series.channel)
        value = None if about is None else _value(about, series, runs[series.run_id])
        if value is not None:
            found.setdefault((series.role, series.channel, series.unit), {})[series.run_id] = value
    figures = []
    for (role, channel, unit), values in sorted(found.items()):
        about = watched(role, channel)
        a, b = _sides(values, baseline, candidate, paired=paired)
        if about is None or not a or not b or a + b == (0.0,) * len(a + b):
            continue
        shown = "ratio" if about.events else unit
        name = f"{role} {channel}"
        figures.append(Measured(about.kind, name, _words(role, channel), shown, about.more_is_worse, a, b))
    return figures


def _value(about: Watched, series: SampleSeries, run: Run) -> float | None:
    duration_s = _measured_s(run, series)
    if about.events:
        inside = [v for at_s, v in zip(series.at_s, series.values, strict=True) if 0 <= at_s <= duration_s]
        return sum(inside) / _MS_PER_S / duration_s if duration_s > 0 else None
    return mean_in(series.at_s, series.values, duration_s)


def _measured_s(run: Run, series: SampleSeries) -> float:
    """How long was measured; of an imported run as long as the channel goes."""
    if run.spec:
        return float(run.spec["workload"]["phases"][-1]["duration_s"])
    return float(np.max(series.at_s)) if series.at_s else 0.0


def _sides(
    values: Mapping[int, float], baseline: Sequence[Run], candidate: Sequence[Run], *, paired: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not paired:
        a, b = ([values[run.pk] for run in side if run.pk in values] for side in (baseline, candidate))
        return tuple(a), tuple(b)
    left, right = ({run.block: values[run.pk] for run in side if run.pk in values} for side in (baseline, candidate))
    blocks = sorted(block for block in left.keys() & right.keys() if block is not None)
    return tuple(left[block] for block in blocks), tuple(right[block] for block in blocks)


def _words(role: str, channel: str) -> str:
    """What charts call the channel, with its host."""
    if channel == "gc.pause_ms":
        return "Share of the time stopped by the garbage collector"
    kind = next((one for one in _KINDS if one.matches(channel)), None)
    if kind is None:
        return f"{role} {channel}"
    title = kind.words(role, channel)
    return title[:1].upper() + title[1:]
