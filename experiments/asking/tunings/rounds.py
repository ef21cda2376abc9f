"""What follows in a tuning search, worked out of stored trials: seconds of arithmetic, so in no transaction.

A round is stored only where its question is still the search's: `Tunings.work_out` in `live`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.tuning import search
from experiments.analysis.tuning.smallest import Smallest, reduce
from experiments.analysis.tuning.space import Config
from experiments.analysis.tuning.standing import Best, best_so_far
from experiments.analysis.tuning.trials import Planned, Settings, Trial
from experiments.asking.tunings.space import SpaceDocument
from experiments.asking.tunings.starts import planned_starts
from experiments.asking.tunings.trials import reverted, searched
from experiments.models import Tuning, TuningTrial


@dataclass(frozen=True)
class Question:
    """All that decides what follows. `winner`: it is confirmed, and the smallest recipe is looked for.

    `low`: what it gains at least, a ratio of speeds. `newest_reverted` are those since a person asked for it, or took
    the search up again.
    """

    settings: Settings
    document: SpaceDocument
    trials: tuple[Trial, ...]
    reverted: tuple[Trial, ...]
    newest_reverted: tuple[Trial, ...]
    reduces: bool
    winner: Config | None
    low: float = 0.0


@dataclass(frozen=True)
class Worked:
    """What follows from a question. `reduced` only with a winner whose smallest recipe is looked for."""

    question: Question
    best: Best | None = None
    step: search.Decision | None = None
    reduced: tuple[Planned, ...] | Smallest | None = None


def question_of(tuning: Tuning, over: Sequence[TuningTrial], settings: Settings) -> Question:
    """What the search asks after these trials."""
    return Question(
        settings=settings,
        document=SpaceDocument.model_validate(tuning.space),
        trials=tuple(searched(over)),
        reverted=tuple(reverted(over)),
        newest_reverted=tuple(reverted([one for one in over if one.position >= tuning.taken_up_at])),
        reduces=tuning.reduces,
        winner=tuning.winner if tuning.outcome == Tuning.Outcome.BETTER else None,
        low=tuning.low_ratio or 0.0,
    )


def work_out(question: Question) -> Worked:
    """What follows. Takes seconds."""
    settings, trials = question.settings, question.trials
    if question.winner is not None:
        return Worked(question, reduced=reduce(settings, question.winner, question.low, question.reverted))
    best = best_so_far(settings, trials)
    if starts := planned_starts(question.document, settings, trials):
        return Worked(question, best, search.Round(starts))
    step = search.decide(settings, trials)
    if isinstance(step, search.Better) and question.reduces:
        return Worked(question, best, step, reduce(settings, step.claim.config, step.claim.low, question.reverted))
    return Worked(question, best, step)
