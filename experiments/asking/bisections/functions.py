"""Where the first bad one costs more: the functions that a bisection ends with, beside the commit."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.bisection import FirstBad
from experiments.analysis.explanations import Explanation
from experiments.asking.bisections.live import next_step
from experiments.judging.comparing.functions import functions_of_variants
from experiments.judging.explaining.why import why_of_experiment
from experiments.models import Bisection


@dataclass(frozen=True)
class FunctionsBehind:
    """What the profiled runs of the deciding step say.

    `shown` are the functions with an interval that fit the loss, those that explain first; `already` names those of
    them that were shown to cost more in the candidate before the first bad one, too, so that they came with another
    change. `missing` says why nothing can be said of functions; empty where they were compared.
    """

    experiment_id: int
    first_bad: str
    good: str
    shown: tuple[Explanation, ...]
    already: tuple[str, ...]
    missing: str

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if self.missing:
            return f"In which functions is not known. {self.missing}"
        new = [one for one in self.shown if one.name not in self.already]
        if not new:
            return f"No function was shown to cost more in {self.first_bad} alone."
        named = " ".join(one.sentence for one in new)
        return f"In {self.first_bad} against {self.good}: {named}"


def functions_behind(bisection: Bisection) -> FunctionsBehind | None:
    """The functions behind the first bad one of a bisection that is over; None when it has no such answer."""
    if bisection.state != Bisection.State.FINISHED:
        return None
    decision = next_step(bisection)
    if not isinstance(decision, FirstBad):
        return None
    steps = {step.index: step.experiment for step in bisection.steps.select_related("experiment")}
    deciding, before = steps[decision.index], steps.get(decision.index - 1)
    names = bisection.names
    answers = why_of_experiment(deciding)
    shown = tuple(
        one
        for answer in answers
        if answer.why is not None
        for one in answer.why.found
        if one.kind == "functions" and one.evidence == "interval"
    )
    missing = next((said for answer in answers if answer.why for said in answer.why.missing if _of_functions(said)), "")
    costlier = {
        row.name
        for found in (functions_of_variants(before) if before is not None else ())
        if found.changes is not None
        for row in found.changes.own
        if row.verdict == "more"
    }
    already = tuple(one.name for one in shown if one.name in costlier)
    return FunctionsBehind(deciding.pk, names[decision.index], names[0], shown, already, missing)


def _of_functions(said: str) -> bool:
    return said.startswith("Functions:")
