"""The gate: what CI is told about an experiment or a run - pass, fail, inconclusive or error - and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from experiments.analysis.number_text import figure_text
from experiments.analysis.outcomes import WORDS
from experiments.analysis.verdict import GateResult, gate_of
from experiments.judging.evidence.host_canaries import hosts_before
from experiments.judging.gate.rules import Evidence, GateRules, Inconclusive, Judged, evidence_of
from experiments.models import Experiment, Run, Variant
from experiments.models.experiments import shown_outcome
from experiments.registry.markdown_text import cell
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.summary import figure

GateOutcome = Literal["pass", "fail", "inconclusive", "error"]

_TITLES: dict[GateOutcome, str] = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "inconclusive": "⚠️ inconclusive",
    "error": "💥 error",
}

_WHY: dict[GateOutcome, str] = {
    "pass": "Nothing changed beyond the margin.",
    "fail": "The gate fails.",
    "inconclusive": "It cannot be told yet whether something changed.",
    "error": "There is no verdict.",
}


@dataclass(frozen=True)
class GateNumber:
    """One figure behind a decision. For a run `value` is set, for a comparison the change against the baseline.

    `shown` is what the outcome is called. `adjusted_p` is corrected for the `family_size` comparisons that were made
    beside it; None when it was the only one.
    """

    metric: str
    label: str
    unit: str
    baseline: str = ""
    candidate: str = ""
    outcome: str = ""
    shown: str = ""
    decides: bool = False
    value: float | None = None
    change_pct: float | None = None
    ci95_low_pct: float | None = None
    ci95_high_pct: float | None = None
    adjusted_p: float | None = None
    family_size: int = 1

    @property
    def words(self) -> str:
        """The outcome as the pages call it."""
        return WORDS.get(self.shown or self.outcome, "")


@dataclass(frozen=True)
class GateVerdict:
    """`finished` False = it still runs, and the outcome says so too (inconclusive).

    `decided_by`: the number of the run that decided; None where several runs did, those of an experiment.
    `counted_as`: what an inconclusive result was made by the gate's rule; None = nothing was made of it.
    `comment`: worth a comment beside the check that is always there; `comment_reason` says why, or why not.
    """

    outcome: GateOutcome
    finished: bool
    reasons: tuple[str, ...]
    numbers: tuple[GateNumber, ...]
    counted_as: Inconclusive | None = None
    decided_by: int | None = None

    @property
    def comment(self) -> bool:
        return self.finished and (self.outcome in ("fail", "error") or bool(self._changes))

    @property
    def comment_reason(self) -> str:
        if not self.finished:
            return "It is not finished."
        if self._changes:
            said = (f"{one.label} of {one.candidate} is {one.words}" for one in self._changes)
            return f"{'; '.join(said)}."
        if self.counted_as is not None:
            return f"{_WHY['inconclusive']} This gate counts that as {self.counted_as}."
        return _WHY[self.outcome]

    @property
    def _changes(self) -> list[GateNumber]:
        return [
            one for one in self.numbers if one.decides and (one.shown or one.outcome).startswith(("better", "worse"))
        ]


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


def experiment_gate(experiment: Experiment, rules: GateRules | None = None) -> GateVerdict:
    """The decision on an experiment by its own rules, or by others. RequestError: the rules make no sense."""
    rules = rules or GateRules()
    # Before the verdicts: they are committed with the end of the last run, so whoever sees it ended sees them too.
    runs = list(experiment.runs.kept().plain().with_names().order_by("number"))
    evidence = evidence_of(experiment, rules)
    known = metrics_of(experiment.team_id, (judged.metric for judged in evidence.judged))
    numbers = tuple(_compared(judged, known.get(judged.metric), evidence.metrics) for judged in evidence.judged)
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
    outcome, reasons = decide(_pairs(evidence, runs))
    said = (*hosts_before(experiment).changed, *reasons, *evidence.notes)  # a host that got slower comes before it
    return _settled(GateVerdict(outcome, True, said, numbers), rules.inconclusive)


PROFILED = "The run was profiled, which costs the server something: its figures count nowhere."


def run_gate(run: Run, inconclusive: Inconclusive = "neutral") -> GateVerdict:
    """The decision on a single run, whatever became of its retries: whether its figures may be trusted."""
    numbers = tuple(
        GateNumber(spec.name, spec.label, spec.unit, value=value)
        for spec in metrics_of(run.team_id, run.metrics).values()
        if (value := figure(run, spec.name)) is not None
    )
    if run.is_live:
        return GateVerdict("inconclusive", False, (f"The run is {run.get_state_display().lower()}.",), numbers)
    if run.outcome != Run.Outcome.SUCCEEDED:
        return GateVerdict("error", True, (_failure(run),), numbers)
    outcome: GateOutcome = "inconclusive"
    if run.profiled and run.validity in Run.USABLE:
        return _settled(GateVerdict("inconclusive", True, (PROFILED,), numbers), inconclusive)
    if run.validity == Run.Validity.INVALID:
        outcome = "fail"
    elif run.validity == Run.Validity.VALID:
        outcome = "pass"
    reasons = _said(run.findings, ("invalid", "warn")) or (f"The run is {run.get_validity_display().lower()}.",)
    return _settled(GateVerdict(outcome, True, reasons, numbers), inconclusive)


def _settled(verdict: GateVerdict, inconclusive: Inconclusive) -> GateVerdict:
    """The verdict once the rule says what too little data means."""
    if verdict.outcome != "inconclusive" or inconclusive == "neutral":
        return verdict
    said = f"This gate counts an inconclusive result as {inconclusive}."
    return replace(verdict, outcome=inconclusive, reasons=(*verdict.reasons, said), counted_as=inconclusive)


def markdown(title: str, url: str, verdict: GateVerdict) -> str:
    """The verdict for a pull request or a job summary."""
    lines = [f"### {_TITLES[verdict.outcome]}: [{cell(title)}]({url})", ""]
    lines += [f"- {cell(reason)}" for reason in verdict.reasons]
    compared = [number for number in verdict.numbers if number.candidate]
    if compared:
        lines += ["", "| candidate | metric | change | 95 % interval | verdict |", "| --- | --- | ---: | ---: | --- |"]
        lines += [
            f"| {cell(n.candidate)} | {n.label} | {_pct(n.change_pct)} | {_interval(n)} | {n.words} |" for n in compared
        ]
        families = {n.decides: n.family_size for n in compared if n.family_size > 1}
        if True in families:
            lines += ["", f"Corrected for {families[True]} comparisons that decide (Holm)."]
    elif verdict.numbers:
        lines += ["", "| metric | value |", "| --- | ---: |"]
        lines += [f"| {n.label} | {_with_unit(n.value, n.unit)} |" for n in verdict.numbers if n.value is not None]
    return "\n".join(lines) + "\n"


def _with_unit(value: float, unit: str) -> str:
    if unit == "ratio":
        return f"{100 * value:.1f} %"
    return figure_text(value) if unit == "count" else f"{figure_text(value)} {unit}"


def _pairs(evidence: Evidence, runs: Sequence[Run]) -> list[Pair]:
    by_place = {(judged.candidate, judged.metric): judged for judged in evidence.judged}
    repeated = {run.retry_of_id for run in runs}  # what was tried again stands and falls with the second try
    pairs = []
    for variant in evidence.candidates:
        failures = tuple(
            f"Run #{run.number} of {_name(run.variant)}: {_failure(run)}"
            for run in runs
            if run.variant_id in (variant.pk, evidence.baseline.pk if evidence.baseline else None)
            and run.pk not in repeated
            and run.outcome in (Run.Outcome.FAILED, Run.Outcome.LOST, Run.Outcome.CANCELLED)
        )
        pairs += [_pair(variant.name, by_place.get((variant.name, metric)), failures) for metric in evidence.metrics]
    return pairs


def _pair(candidate: str, judged: Judged | None, failures: tuple[str, ...]) -> Pair:
    if judged is None:
        return Pair(candidate, None, "", failures)
    family = judged.numbers.get("family")
    return Pair(candidate, judged.outcome, judged.sentence, failures, stands=family is None or family["stands"])


def _name(variant: Variant | None) -> str:
    return variant.name if variant else "a variant"


def _failure(run: Run) -> str:
    return run.failure or f"The run ended as {run.get_outcome_display().lower()}."


def _said(findings: Sequence[Mapping[str, Any]], levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(finding["sentence"] for level in levels for finding in findings if finding["level"] == level)


def _compared(judged: Judged, spec: MetricSpec | None, deciding: Collection[str]) -> GateNumber:
    family = judged.numbers.get("family") or {}
    low, high = judged.numbers.get("ci95_pct") or (None, None)
    return GateNumber(
        metric=judged.metric,
        label=spec.label if spec else judged.metric,
        unit=spec.unit if spec else "",
        baseline=judged.baseline,
        candidate=judged.candidate,
        outcome=judged.outcome,
        shown=shown_outcome(judged.outcome, judged.numbers),
        decides=judged.metric in deciding,
        change_pct=judged.numbers.get("estimate_pct"),
        ci95_low_pct=low,
        ci95_high_pct=high,
        adjusted_p=family.get("adjusted_p"),
        family_size=family.get("size", 1),
    )


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f} %"


def _interval(number: GateNumber) -> str:
    return f"{_pct(number.ci95_low_pct)} … {_pct(number.ci95_high_pct)}" if number.ci95_low_pct is not None else "-"
