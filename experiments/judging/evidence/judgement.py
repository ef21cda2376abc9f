"""From reports and samples to the analysis package and back: the validity of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from agents.drivers import DRIVERS
from experiments.analysis.findings import ToolHabits
from experiments.analysis.thresholds import DEFAULT_THRESHOLDS, Thresholds
from experiments.analysis.validity import Course, Finding, HostFigures, LoadFigures, RunValidity, judge_run

_LOAD_FIELDS = (
    "requests",
    "throughput_rps",
    "offered_rate_rps",
    "duration_s",
    "connections",
    "threads",
    "errors_connect",
    "errors_read",
    "errors_write",
    "errors_timeout",
    "errors_status",
    "errors_other",
    "latency_mean_ms",
    "latency_stdev_ms",
    "latency_max_ms",
    "thread_rps_mean",
    "dropped_iterations",
    "thresholds_failed",
    "thresholds_passed",
)


def judge(
    report: Mapping[str, Any],
    *,
    requested_duration_s: float | None = None,
    least_duration_s: float | None = None,
    hosts: HostFigures | None = None,
    course: Course | None = None,
    has_own_figures: bool = False,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> RunValidity:
    """The validity of one run from its load report (`LoadReport.to_json`) and what was seen on the hosts.

    `has_own_figures`: another figure than the throughput stands for it, as a team's own does.
    """
    tool = str(report["tool"])
    habits = ToolHabits(**asdict(DRIVERS[tool].habits)) if tool in DRIVERS else ToolHabits()
    figures = LoadFigures(
        tool=tool,
        habits=habits,
        load_model=report["load_model"],
        latency_basis=report["latency_basis"],
        requested_duration_s=requested_duration_s,
        least_duration_s=least_duration_s,
        has_own_figures=has_own_figures or bool(report.get("own_metrics")),
        usable=bool(report.get("usable", True)),
        why=report.get("why"),
        **{name: report.get(name) for name in _LOAD_FIELDS},
    )
    return judge_run(figures, hosts, course, thresholds=thresholds)


def asked_duration_s(report: Mapping[str, Any]) -> float | None:
    """How long the load was to last at least, by what the tool or its command line says of it; None = neither does."""
    nominal_s = report.get("duration_nominal_s")
    if nominal_s is None or str(report["tool"]) not in DRIVERS:
        return None
    return DRIVERS[str(report["tool"])].least_asked_s(float(nominal_s))


def findings_json(validity: RunValidity) -> list[dict[str, Any]]:
    return [finding_json(finding) for finding in validity.findings]


def finding_json(finding: Finding) -> dict[str, Any]:
    return {**vars(finding), "evidence": dict(finding.evidence), "thresholds": dict(finding.thresholds)}


def mean_in(at_s: Sequence[float], values: Sequence[float], duration_s: float) -> float | None:
    """The mean of the samples inside the measured window [0, duration_s]."""
    inside = [v for t, v in zip(at_s, values, strict=True) if 0 <= t <= duration_s]
    return float(np.mean(inside)) if inside else None


def stalled_s(at_s: Sequence[float], values: Sequence[float], duration_s: float) -> float | None:
    """Seconds of the window in which the rate was below a tenth of what it was while load came: it stood still.

    What it was is the median of the samples that are not empty beside the busiest ones, so that a load that was off for
    most of the window is told as well. A sample speaks for the step that ends with it: one that lies more before
    the window than in it tells of the time before the load.
    """
    if len(at_s) < 2:
        return None
    step_s = float(np.median(np.diff(at_s)))
    inside = [v for t, v in zip(at_s, values, strict=True) if step_s / 2 <= t <= duration_s]
    if len(inside) < 5:
        return None
    rates = np.array(inside)
    high = max(np.quantile(rates, 0.95), rates.mean())
    return float(np.sum(rates < 0.1 * np.median(rates[rates >= 0.1 * high])) * step_s) if high > 0 else None


def unseen_s(at_s: Sequence[float], duration_s: float, interval_s: float) -> float:
    """Seconds of the measured window that no sample speaks for. Each speaks for the interval that ends with it.

    Samples that are late by less than another interval leave no gap.
    """
    missing, before = 0.0, 0.0
    for at in [*(t for t in at_s if 0 < t < duration_s + interval_s), duration_s + interval_s]:
        if at - before > 2 * interval_s:
            missing += min(at, duration_s) - before - (interval_s if at <= duration_s else 0)
        before = at
    return max(0.0, missing)
