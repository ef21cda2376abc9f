"""The gate: what CI is told about an experiment or a run - pass, fail, inconclusive or error - and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.analysis.verdict import gate_of
from experiments.metrics import METRICS
from experiments.models import Experiment, Run, StoredVerdict, Variant
from experiments.summary import figure

GateOutcome = Literal["pass", "fail", "inconclusive", "error"]

_TITLES: dict[GateOutcome, str] = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "inconclusive": "⚠️ inconclusive",
    "error": "💥 error",
}


@dataclass(frozen=True)
class GateNumber:
    """One figure behind a decision. For a run `value` is set, for a comparison the change against the baseline."""

    metric: str
    label: str
    unit: str
    baseline: str = ""
    candidate: str = ""
    outcome: str = ""
    decides: bool = False
    value: float | None = None
    change_pct: float | None = None
    ci95_low_pct: float | None = None
    ci95_high_pct: float | None = None


@dataclass(frozen=True)
class GateVerdict:
    """`finished` False = it still runs, and the outcome says so too (inconclusive)."""

    outcome: GateOutcome
    finished: bool
    reasons: tuple[str, ...]
    numbers: tuple[GateNumber, ...]


@dataclass(frozen=True)
class Pair:
    """One candidate as the decision sees it: its verdict (None = none stored) and the runs that brought no figure."""

    candidate: str
    outcome: str | None
    sentence: str
    failures: tuple[str, ...] = ()


def decide(pairs: Sequence[Pair]) -> tuple[GateOutcome, tuple[str, ...]]:
    """The worst of all candidates: a proven loss fails, then what prevented a verdict, then what stayed open."""
    if not pairs:
        return "inconclusive", ("There is no candidate to compare with the baseline.",)
    worse = [pair for pair in pairs if pair.outcome is not None and gate_of(pair.outcome) == "fail"]
    if worse:
        return "fail", tuple(pair.sentence for pair in worse)
    undecided = [pair for pair in pairs if pair.outcome is None or gate_of(pair.outcome) == "neutral"]
    failures = tuple(dict.fromkeys(failure for pair in undecided for failure in pair.failures))
    if failures:
        return "error", failures
    if undecided:
        return "inconclusive", tuple(pair.sentence or f"There is no verdict on {pair.candidate}." for pair in undecided)
    return "pass", tuple(pair.sentence for pair in pairs)


def experiment_gate(experiment: Experiment) -> GateVerdict:
    """The decision on an experiment from its stored verdicts; only those of the primary metric decide."""
    stored = list(experiment.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric"))
    numbers = tuple(_compared(verdict, experiment.primary_metric) for verdict in stored)
    runs = list(experiment.runs.with_names().order_by("number"))
    open_runs = [run for run in runs if run.is_live]
    if experiment.state == Experiment.State.DRAFT:
        return GateVerdict("inconclusive", False, ("The experiment has not been launched.",), numbers)
    if open_runs:
        done = len(runs) - len(open_runs)
        return GateVerdict("inconclusive", False, (f"{done} of {len(runs)} runs are finished.",), numbers)
    if experiment.state == Experiment.State.CANCELLED:
        return GateVerdict("error", True, ("The experiment was cancelled.",), numbers)
    outcome, reasons = decide(_pairs(experiment, stored, runs))
    return GateVerdict(outcome, True, reasons, numbers)


def run_gate(run: Run) -> GateVerdict:
    """The decision on a single run: whether its figures may be trusted."""
    numbers = tuple(
        GateNumber(spec.name, spec.label, spec.unit, value=value)
        for spec in METRICS.values()
        if (value := figure(run, spec.name)) is not None
    )
    if run.is_live:
        return GateVerdict("inconclusive", False, (f"The run is {run.get_state_display()}.",), numbers)
    if run.outcome != Run.Outcome.SUCCEEDED:
        return GateVerdict("error", True, (_failure(run),), numbers)
    outcome: GateOutcome = "inconclusive"
    if run.validity == Run.Validity.INVALID:
        outcome = "fail"
    elif run.validity == Run.Validity.VALID:
        outcome = "pass"
    reasons = _said(run.findings, ("invalid", "warn")) or (f"The run is {run.get_validity_display()}.",)
    return GateVerdict(outcome, True, reasons, numbers)


def markdown(title: str, url: str, verdict: GateVerdict) -> str:
    """The verdict for a pull request or a job summary."""
    lines = [f"### {_TITLES[verdict.outcome]}: [{_cell(title)}]({url})", ""]
    lines += [f"- {_cell(reason)}" for reason in verdict.reasons]
    compared = [number for number in verdict.numbers if number.candidate]
    if compared:
        lines += ["", "| candidate | metric | change | 95 % interval | verdict |", "| --- | --- | ---: | ---: | --- |"]
        lines += [
            f"| {_cell(n.candidate)} | {n.label} | {_pct(n.change_pct)} | {_interval(n)} | {_words(n.outcome)} |"
            for n in compared
        ]
    elif verdict.numbers:
        lines += ["", "| metric | value |", "| --- | ---: |"]
        lines += [f"| {n.label} | {_figure(n.value)} {n.unit} |" for n in verdict.numbers if n.value is not None]
    return "\n".join(lines) + "\n"


def _pairs(experiment: Experiment, stored: Sequence[StoredVerdict], runs: Sequence[Run]) -> list[Pair]:
    variants = list(experiment.variants.all())
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    primary = {v.candidate_id: v for v in stored if v.metric == experiment.primary_metric}
    repeated = {run.retry_of_id for run in runs}  # what was tried again stands and falls with the second try
    pairs = []
    for variant in variants:
        if variant == baseline:
            continue
        verdict = primary.get(variant.pk)
        failures = tuple(
            f"Run #{run.number} of {_name(run.variant)}: {_failure(run)}"
            for run in runs
            if run.variant_id in (variant.pk, baseline.pk if baseline else None)
            and run.pk not in repeated
            and run.outcome in (Run.Outcome.FAILED, Run.Outcome.LOST, Run.Outcome.CANCELLED)
        )
        pairs.append(
            Pair(variant.name, verdict.outcome if verdict else None, verdict.sentence if verdict else "", failures)
        )
    return pairs


def _name(variant: Variant | None) -> str:
    return variant.name if variant else "a variant"


def _failure(run: Run) -> str:
    return run.failure or f"The run {run.get_outcome_display()}."


def _said(findings: Sequence[Mapping[str, Any]], levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(finding["sentence"] for level in levels for finding in findings if finding["level"] == level)


def _compared(verdict: StoredVerdict, primary: str) -> GateNumber:
    spec = METRICS.get(verdict.metric)
    low, high = verdict.numbers.get("ci95_pct") or (None, None)
    return GateNumber(
        metric=verdict.metric,
        label=spec.label if spec else verdict.metric,
        unit=spec.unit if spec else "",
        baseline=verdict.baseline.name,
        candidate=verdict.candidate.name,
        outcome=verdict.outcome,
        decides=verdict.metric == primary,
        change_pct=verdict.numbers.get("estimate_pct"),
        ci95_low_pct=low,
        ci95_high_pct=high,
    )


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f} %"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _interval(number: GateNumber) -> str:
    return f"{_pct(number.ci95_low_pct)} … {_pct(number.ci95_high_pct)}" if number.ci95_low_pct is not None else "-"


def _cell(text: str) -> str:
    """Text that stays text inside a Markdown table or link."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
