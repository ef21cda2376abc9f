"""What CI is told about a bisection: the first bad one with its interval, or why there is none, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.analysis.bisection import Between, Decision, FirstBad, NothingToFind
from experiments.asking.bisections.functions import FunctionsBehind, functions_behind
from experiments.asking.bisections.live import next_step
from experiments.asking.bisections.reading import remaining, steps_of
from experiments.judging.gate.decision import experiment_gate
from experiments.models import Bisection, BisectionStep
from experiments.registry.markdown_text import cell

Outcome = Literal["found", "not_worse", "unclear", "error"]

_TITLES: dict[Outcome, str] = {
    "found": "🎯 first bad one",
    "not_worse": "✅ nothing to find",
    "unclear": "⚠️ unclear",
    "error": "💥 error",
}


@dataclass(frozen=True)
class BisectionAnswer:
    """`finished` False = steps are still to come, and the outcome says so too (unclear).

    `first_bad`, the change of it against the good one and `functions` are set only when exactly that one is known.
    """

    outcome: Outcome
    finished: bool
    reasons: tuple[str, ...]
    first_bad: str | None = None
    change_pct: float | None = None
    ci95_low_pct: float | None = None
    ci95_high_pct: float | None = None
    functions: FunctionsBehind | None = None

    @property
    def comment_reason(self) -> str:
        if not self.finished:
            return "It is not finished."
        return "The first bad one is known." if self.outcome == "found" else "No first bad one is known."


def answer_of(bisection: Bisection) -> BisectionAnswer:
    """The answer as it stands now."""
    steps = steps_of(bisection)
    if bisection.state == Bisection.State.RUNNING:
        return BisectionAnswer("unclear", False, (*_over(bisection, steps), *_under_way(bisection, steps)))
    decision = next_step(bisection)
    reasons = (bisection.sentence, *_why_unclear(bisection, steps))
    if bisection.state == Bisection.State.CANCELLED or not isinstance(decision, FirstBad):
        return BisectionAnswer(_without_one(bisection, decision), True, reasons)
    bad = next(step for step in steps if step.index == decision.index)
    name, interval = bisection.names[decision.index], (bad.ci95_low_pct, bad.ci95_high_pct)
    behind = functions_behind(bisection)
    where = (behind.sentence,) if behind else ()
    return BisectionAnswer("found", True, (*reasons, *where), name, bad.estimate_pct, *interval, behind)


def markdown(bisection: Bisection, url: str, answer: BisectionAnswer) -> str:
    """The answer for a pull request or a job summary."""
    names = bisection.names
    title = _TITLES[answer.outcome] + (f" {cell(answer.first_bad)}" if answer.first_bad else "")
    lines = [f"### {title}: [{cell(bisection.name)}]({url})", "", *(f"- {cell(reason)}" for reason in answer.reasons)]
    if steps := [step for step in steps_of(bisection) if step.result]:
        lines += [
            "",
            f"| step | candidate | against {cell(names[0])} | change | 95 % interval |",
            "| ---: | --- | --- | ---: | ---: |",
        ]
        lines += [
            f"| {step.position + 1} | {cell(names[step.index])} | {_result(step)} | {_pct(step.estimate_pct)} "
            f"| {_interval(step)} |"
            for step in steps
        ]
    return "\n".join(lines) + "\n"


def _without_one(bisection: Bisection, decision: Decision) -> Outcome:
    if bisection.state == Bisection.State.CANCELLED:
        return "error"
    if isinstance(decision, NothingToFind):
        return "not_worse" if decision.result == "good" else "unclear"
    return "unclear" if isinstance(decision, Between) else "error"  # it stopped while steps were still to come


def _over(bisection: Bisection, steps: Sequence[BisectionStep]) -> list[str]:
    return [
        f"Step {step.position + 1}: {bisection.names[step.index]} is {_result(step)}. {step.sentence}"
        for step in steps
        if step.result
    ]


def _why_unclear(bisection: Bisection, steps: Sequence[BisectionStep]) -> list[str]:
    """What went wrong in the steps that stayed unclear: the first failed run of each."""
    found = []
    for step in steps:
        if step.result == BisectionStep.Result.UNCLEAR:
            verdict = experiment_gate(step.experiment)
            if verdict.outcome == "error":
                found.append(f"Step {step.position + 1}, {bisection.names[step.index]}: {verdict.reasons[0]}")
    return found


def _under_way(bisection: Bisection, steps: Sequence[BisectionStep]) -> list[str]:
    names, left = bisection.names, remaining(bisection)
    known = f"{names[-1]} must be worse than {names[0]} at all"
    if bisection.high is not None:
        known = f"The first bad one is after {names[bisection.low]} and not after {names[bisection.high]}"
    said = [f"{known}; at most {left.steps} step{'s' * (left.steps != 1)} to go."]
    for step in steps:
        if not step.result:
            progress = " ".join(experiment_gate(step.experiment).reasons)
            said.append(f"Step {step.position + 1} compares {names[step.index]} with {names[0]}: {progress}")
    return [*said, *filter(None, [bisection.sentence])]


def _result(step: BisectionStep) -> str:
    return str(step.get_result_display()).lower()


def _interval(step: BisectionStep) -> str:
    return f"{_pct(step.ci95_low_pct)} … {_pct(step.ci95_high_pct)}" if step.ci95_low_pct is not None else "-"


def _pct(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f} %"
