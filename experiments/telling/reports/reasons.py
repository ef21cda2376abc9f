"""What goes with the verdicts, as the report says it."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.analysis.explanations import Evidence
from experiments.judging.explaining.why import why_of_experiment
from experiments.models import Experiment

SAID: dict[Evidence, str] = {
    "interval": "Shown",
    "difference": "Differs",
    "against": "Shown, in the other direction",
}


@dataclass(frozen=True)
class Reasons:
    """Of one candidate with a shown change: the headline, what goes with it in order, what was not measured."""

    candidate: str
    headline: str
    found: tuple[str, ...]
    missing: tuple[str, ...]


def reasons_of(experiment: Experiment) -> tuple[Reasons, ...]:
    """For each candidate with a shown change, by the metric that decides."""
    return tuple(
        Reasons(
            answer.of,
            answer.why.headline,
            tuple(f"{SAID[one.evidence]}: {one.sentence}" for one in answer.why.found),
            answer.why.missing,
        )
        for answer in why_of_experiment(experiment)
        if answer.why is not None
    )
