"""From reports and samples to the analysis package and back: validity of a run, verdicts of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.analysis.validity import HostFigures, LoadFigures, RunValidity, judge_run
from experiments.analysis.verdict import Verdict
from experiments.analysis.verdict import judge as judge_pair
from experiments.metrics import METRICS
from experiments.models import Experiment, Run, StoredVerdict, Variant
from experiments.summary import figure

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
)


def judge(
    report: Mapping[str, Any], *, requested_duration_s: float | None = None, hosts: HostFigures | None = None
) -> RunValidity:
    """The validity of one run from its load report (`LoadReport.to_json`) and what was seen on the hosts."""
    figures = LoadFigures(
        tool=str(report["tool"]),
        load_model=report["load_model"],
        latency_basis=report["latency_basis"],
        requested_duration_s=requested_duration_s,
        usable=bool(report.get("usable", True)),
        why=report.get("why"),
        **{name: report.get(name) for name in _LOAD_FIELDS},
    )
    return judge_run(figures, hosts)


def findings_json(validity: RunValidity) -> list[dict[str, Any]]:
    return [{**asdict(finding), "evidence": dict(finding.evidence)} for finding in validity.findings]


def mean_in(at_s: Sequence[float], values: Sequence[float], duration_s: float) -> float | None:
    """The mean of the samples inside the measured window [0, duration_s]."""
    inside = [v for t, v in zip(at_s, values, strict=True) if 0 <= t <= duration_s]
    return float(np.mean(inside)) if inside else None


def stalled_s(at_s: Sequence[float], values: Sequence[float], duration_s: float) -> float | None:
    """Seconds of the window in which the rate was below a tenth of its median: the load stood still."""
    inside = [(t, v) for t, v in zip(at_s, values, strict=True) if 0 <= t <= duration_s]
    if len(inside) < 5:
        return None
    times, rates = np.array(inside).T
    step_s = float(np.median(np.diff(times)))
    return float(np.sum(rates < 0.1 * np.median(rates)) * step_s)


def store_verdicts(experiment: Experiment) -> None:
    """Judge every candidate against the baseline again and store what came out. Call inside a transaction."""
    variants = list(experiment.variants.all())
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return
    runs = list(experiment.runs.filter(state=Run.State.FINISHED).order_by("block").defer("spec", "findings"))
    for metric in _judged_metrics(experiment):
        for candidate in variants:
            if candidate.pk == baseline.pk:
                continue
            verdict = _judge_variants(experiment, runs, baseline, candidate, metric)
            StoredVerdict.objects.update_or_create(
                experiment=experiment,
                baseline=baseline,
                candidate=candidate,
                metric=metric,
                defaults={
                    "outcome": verdict.outcome,
                    "sentence": verdict.sentence(baseline.name, candidate.name, METRICS[metric].label),
                    "numbers": _numbers(verdict),
                },
            )


def _judged_metrics(experiment: Experiment) -> list[str]:
    """The primary metric decides; p99 latency stands beside it."""
    return list(dict.fromkeys([experiment.primary_metric, "latency_p99_ms"]))


def _judge_variants(
    experiment: Experiment, runs: Sequence[Run], baseline: Variant, candidate: Variant, metric: str
) -> Verdict:
    a = {run.block: _figure(run, metric) for run in runs if run.variant_id == baseline.pk}
    b = {run.block: _figure(run, metric) for run in runs if run.variant_id == candidate.pk}
    blocked = experiment.order != Experiment.Order.SEQUENTIAL
    blocks = sorted({block for block in (*a, *b) if block is not None})
    return judge_pair(
        [a.get(block) for block in blocks],
        [b.get(block) for block in blocks],
        higher_is_better=METRICS[metric].higher_is_better,
        margin_ratio=experiment.margin_ratio,
        design="blocked" if blocked else "independent",
    )


def _figure(run: Run, metric: str) -> float | None:
    """The run's figure when it counts. An invalid run, or latency that saturation hides, is a missing repetition.

    So is a figure of 0, which has no logarithm: verdicts compare ratios.
    """
    usable = run.outcome == Run.Outcome.SUCCEEDED and run.validity in Run.USABLE
    return (figure(run, metric) or None) if usable else None


def _numbers(verdict: Verdict) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(verdict).items()}
