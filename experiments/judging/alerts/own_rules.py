"""A team's own rules for alerts: what breaks them, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.number_text import figure_text
from experiments.models import AlertRule, Experiment, Run, StoredVerdict
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.runs.summary import figure

_LOST = ("worse", "worse_size_uncertain", "fails")
"""What a verdict is shown as when its candidate lost."""


@dataclass(frozen=True)
class Broken:
    """A rule and what broke it."""

    rule: AlertRule
    sentence: str
    run: Run | None = None
    experiment: Experiment | None = None


def broken_by_runs(team_id: int, runs: Sequence[Run]) -> list[Broken]:
    """What these ended runs break. A figure counts when its run does: not of an invalid run, nor hidden latency."""
    rules = list(AlertRule.objects.filter(team_id=team_id, is_active=True).exclude(kind=AlertRule.Kind.VERDICT))
    return [broken for run in runs for rule in rules if (broken := _broken_by(rule, run)) is not None]


def broken_by_verdicts(experiment: Experiment) -> list[Broken]:
    """What the final verdicts of an experiment break, by the metrics that decide."""
    rules = list(AlertRule.objects.filter(team_id=experiment.team_id, is_active=True, kind=AlertRule.Kind.VERDICT))
    if not rules:
        return []
    found = experiment.verdicts.filter(metric__in=experiment.deciding_metrics).select_related("candidate")
    lost = sorted((one for one in found if one.shown in _LOST), key=_place)
    said = " ".join(one.sentence for one in lost)
    return [
        Broken(rule, f"{experiment.name}: {said}", experiment=experiment)
        for rule in rules
        if lost and _watches(rule, experiment.workload.name, experiment.labels)
    ]


def condition(rule: AlertRule) -> str:
    """What a rule watches for, in words."""
    if rule.kind != AlertRule.Kind.FIGURE:
        return str(rule.get_kind_display())
    spec = metric_named(rule.team_id, rule.metric)
    return f"{spec.label} {rule.side} {figure_text(rule.limit or 0.0)} {spec.unit}".rstrip()


def scope(rule: AlertRule) -> str:
    """Which runs it looks at, in words; "" for all of them."""
    labels = (f"{key}={value}" for key, value in rule.labels.items())
    return ", ".join(filter(None, (f"workload {rule.workload}" if rule.workload else "", *labels)))


def _place(verdict: StoredVerdict) -> tuple[int, str]:
    return verdict.candidate.position, verdict.metric


def _broken_by(rule: AlertRule, run: Run) -> Broken | None:
    workload = run.workload.name if run.workload is not None else ""
    if run.is_demo or run.is_twin or not _watches(rule, workload, run.labels):
        return None
    of = f"Run #{run.number}{f' of {workload}' if workload else ''}"
    if rule.kind == AlertRule.Kind.RUN_FAILED:
        if run.outcome not in (Run.Outcome.FAILED, Run.Outcome.LOST):
            return None
        why = next(iter(run.failure.strip().splitlines()), "")
        return Broken(rule, f"{of} {run.get_outcome_display().lower()}. {why}".rstrip(), run=run)
    value = figure(run, rule.metric) if run.is_usable else None
    if value is None or rule.limit is None:
        return None
    if not (value > rule.limit if rule.side == AlertRule.Side.ABOVE else value < rule.limit):
        return None
    spec = metric_named(rule.team_id, rule.metric)
    unit = f" {spec.unit}".rstrip()
    is_so = f"{spec.label} is {figure_text(value)}{unit}, {rule.side} {figure_text(rule.limit)}{unit}"
    return Broken(rule, f"{of}: {is_so}.", run=run)


def _watches(rule: AlertRule, workload: str, labels: Mapping[str, str]) -> bool:
    return rule.workload in ("", workload) and all(labels.get(key) == value for key, value in rule.labels.items())


def changed_fields(rule: AlertRule) -> Iterator[tuple[str, object]]:
    """What the audit trail says of a rule."""
    for name in ("kind", "metric", "side", "limit", "workload", "labels", "is_active"):
        yield name, getattr(rule, name)
