"""The gate: what CI is told about an experiment or a run - pass, fail, inconclusive or error - and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.analysis.number_text import figure_text
from experiments.analysis.verdict import GateResult, gate_of
from experiments.markdown_text import cell
from experiments.metrics import METRICS
from experiments.models import Experiment, Run, StoredVerdict, Variant
from experiments.runs.summary import figure

GateOutcome = Literal["pass", "fail", "inconclusive", "error"]

_TITLES: dict[GateOutcome, str] = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "inconclusive": "⚠️ inconclusive",
    "error": "💥 error",
}


@dataclass(frozen=True)
class GateNumber:
    """One figure behind a decision. For a run `value` is set, for a comparison the change against the baseline.

    `adjusted_p` is corrected for the `family_size` comparisons that were made beside it; None when it was the only one.
    """

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
    adjusted_p: float | None = None
    family_size: int = 1


@dataclass(frozen=True)
class GateVerdict:
    """`finished` False = it still runs, and the outcome says so too (inconclusive)."""

    outcome: GateOutcome
    finished: bool
    reasons: tuple[str, ...]
    numbers: tuple[GateNumber, ...]


@dataclass(frozen=True)
class Pair:
    """One candidate and metric as the decision sees them: the verdict (None = none stored) and runs without a figure.

    `stands`: a difference that holds once it is corrected for all comparisons that decide.
    """

    candidate: str
    outcome: str | None
    sentence: str
    failures: tuple[str, ...] = ()
    stands: bool = True

    @property
    def says(self) -> GateResult:
        """A loss that does not stand is not proven, so it is left open."""
        if self.outcome is None:
            return "neutral"
        result = gate_of(self.outcome)
        return "neutral" if result == "fail" and not self.stands else result


def decide(pairs: Sequence[Pair]) -> tuple[GateOutcome, tuple[str, ...]]:
    """The worst of all candidates: a proven loss fails, then what prevented a verdict, then what stayed open."""
    if not pairs:
        return "inconclusive", ("There is no candidate to compare with the baseline.",)
    worse = [pair for pair in pairs if pair.says == "fail"]
    if worse:
        return "fail", tuple(pair.sentence for pair in worse)
    undecided = [pair for pair in pairs if pair.says == "neutral"]
    failures = tuple(dict.fromkeys(failure for pair in undecided for failure in pair.failures))
    if failures:
        return "error", failures
    if undecided:
        return "inconclusive", tuple(pair.sentence or f"There is no verdict on {pair.candidate}." for pair in undecided)
    return "pass", tuple(pair.sentence for pair in pairs)


def experiment_gate(experiment: Experiment) -> GateVerdict:
    """The decision on an experiment from its stored verdicts; those of its deciding metrics count."""
    stored = list(experiment.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric"))
    numbers = tuple(_compared(verdict, experiment.deciding_metrics) for verdict in stored)
    runs = list(experiment.runs.with_names().order_by("number"))
    open_runs = [run for run in runs if run.is_live]
    if experiment.state == Experiment.State.DRAFT:
        return GateVerdict("inconclusive", False, ("The experiment has not been launched.",), numbers)
    if experiment.state == Experiment.State.BLOCKED:
        return GateVerdict("error", True, (experiment.state_reason,), numbers)
    if experiment.state == Experiment.State.PAUSED:
        return GateVerdict("inconclusive", False, (f"The experiment is paused. {experiment.state_reason}",), numbers)
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
    lines = [f"### {_TITLES[verdict.outcome]}: [{cell(title)}]({url})", ""]
    lines += [f"- {cell(reason)}" for reason in verdict.reasons]
    compared = [number for number in verdict.numbers if number.candidate]
    if compared:
        lines += ["", "| candidate | metric | change | 95 % interval | verdict |", "| --- | --- | ---: | ---: | --- |"]
        lines += [
            f"| {cell(n.candidate)} | {n.label} | {_pct(n.change_pct)} | {_interval(n)} | {_words(n.outcome)} |"
            for n in compared
        ]
        families = {n.decides: n.family_size for n in compared if n.family_size > 1}
        if True in families:
            lines += ["", f"Corrected for {families[True]} comparisons that decide (Holm)."]
    elif verdict.numbers:
        lines += ["", "| metric | value |", "| --- | ---: |"]
        lines += [f"| {n.label} | {figure_text(n.value)} {n.unit} |" for n in verdict.numbers if n.value is not None]
    return "\n".join(lines) + "\n"


def _pairs(experiment: Experiment, stored: Sequence[StoredVerdict], runs: Sequence[Run]) -> list[Pair]:
    variants = list(experiment.variants.all())
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    by_place = {(v.candidate_id, v.metric): v for v in stored}
    repeated = {run.retry_of_id for run in runs}  # what was tried again stands and falls with the second try
    pairs = []
    for variant in variants:
        if variant == baseline:
            continue
        failures = tuple(
            f"Run #{run.number} of {_name(run.variant)}: {_failure(run)}"
            for run in runs
            if run.variant_id in (variant.pk, baseline.pk if baseline else None)
            and run.pk not in repeated
            and run.outcome in (Run.Outcome.FAILED, Run.Outcome.LOST, Run.Outcome.CANCELLED)
        )
        pairs += [
            _pair(variant.name, by_place.get((variant.pk, metric)), failures) for metric in experiment.deciding_metrics
        ]
    return pairs


def _pair(candidate: str, verdict: StoredVerdict | None, failures: tuple[str, ...]) -> Pair:
    if verdict is None:
        return Pair(candidate, None, "", failures)
    family = verdict.numbers.get("family")
    return Pair(candidate, verdict.outcome, verdict.sentence, failures, stands=family is None or family["stands"])


def _name(variant: Variant | None) -> str:
    return variant.name if variant else "a variant"


def _failure(run: Run) -> str:
    return run.failure or f"The run {run.get_outcome_display()}."


def _said(findings: Sequence[Mapping[str, Any]], levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(finding["sentence"] for level in levels for finding in findings if finding["level"] == level)


def _compared(verdict: StoredVerdict, deciding: Collection[str]) -> GateNumber:
    spec = METRICS.get(verdict.metric)
    family = verdict.numbers.get("family") or {}
    low, high = verdict.numbers.get("ci95_pct") or (None, None)
    return GateNumber(
        metric=verdict.metric,
        label=spec.label if spec else verdict.metric,
        unit=spec.unit if spec else "",
        baseline=verdict.baseline.name,
        candidate=verdict.candidate.name,
        outcome=verdict.outcome,
        decides=verdict.metric in deciding,
        change_pct=verdict.numbers.get("estimate_pct"),
        ci95_low_pct=low,
        ci95_high_pct=high,
        adjusted_p=family.get("adjusted_p"),
        family_size=family.get("size", 1),
    )


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f} %"


def _interval(number: GateNumber) -> str:
    return f"{_pct(number.ci95_low_pct)} … {_pct(number.ci95_high_pct)}" if number.ci95_low_pct is not None else "-"
