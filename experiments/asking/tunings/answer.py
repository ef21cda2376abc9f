"""What CI is told about a tuning search: the confirmed gain, or why there is none, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from experiments.asking.tunings.reading import cost_of, trials_of
from experiments.asking.tunings.wording import (
    claim_beside,
    config_text,
    improvement_pct,
    pause_sentence,
    shown,
    smallest_evidence,
)
from experiments.models import Tuning
from experiments.registry.markdown_text import cell

Outcome = Literal["better", "nothing_better", "budget_too_small", "error"]

_TITLES: Mapping[Outcome, str] = {
    "better": "✅ better than the default",
    "nothing_better": "➖ nothing better",
    "budget_too_small": "⚠️ budget too small",
    "error": "💥 error",
}


@dataclass(frozen=True)
class TuningAnswer:
    """`finished` False = trials are still to come, and the outcome says nothing yet (budget_too_small).

    The configuration and its gain are set only when it is confirmed. The gain is by how many per cent the metric gets
    better: by how much it falls where lower is better.
    """

    outcome: Outcome
    finished: bool
    reasons: tuple[str, ...]
    config: Mapping[str, Any] | None = None
    smallest: Mapping[str, Any] | None = None
    gain_pct: float | None = None
    ci95_low_pct: float | None = None
    ci95_high_pct: float | None = None

    @property
    def comment_reason(self) -> str:
        if not self.finished:
            return "It is not finished."
        return "A better configuration is confirmed." if self.outcome == "better" else "No better one is confirmed."


def answer_of(tuning: Tuning) -> TuningAnswer:
    """The answer as it stands now."""
    if tuning.state == Tuning.State.RUNNING:
        cost = cost_of(tuning, trials_of(tuning))
        of_them = f", {cost.left_reduction_runs} of them for the smallest recipe" if cost.left_reduction_runs else ""
        over = "1 run is" if cost.runs == 1 else f"{cost.runs} runs are"
        said = f"{over} over, at most {cost.left_runs} to go{of_them}."
        return TuningAnswer(
            "budget_too_small", False, (" ".join(filter(None, (said, tuning.sentence, pause_sentence(tuning)))),)
        )
    reasons = [*filter(None, [claim_beside(tuning), tuning.sentence]), *smallest_reasons(tuning)]
    if tuning.winner is None or tuning.gain_ratio is None or tuning.low_ratio is None or tuning.high_ratio is None:
        return TuningAnswer(_without_one(tuning), True, tuple(reasons))
    return TuningAnswer(
        "better",
        True,
        tuple(reasons),
        tuning.winner,
        tuning.smallest["config"] if tuning.smallest else None,
        *(improvement_pct(tuning, one) for one in (tuning.gain_ratio, tuning.low_ratio, tuning.high_ratio)),
    )


def smallest_reasons(tuning: Tuning) -> list[str]:
    """What was found of each parameter alone, of all that may go together, and what that rests on."""
    found = tuning.smallest or {}
    together = found.get("together") or {}
    said = [
        *(one["sentence"] for one in found.get("each", ())),
        together.get("sentence", ""),
        smallest_evidence(tuning),
    ]
    return [one for one in said if one]


def markdown(tuning: Tuning, url: str, answer: TuningAnswer) -> str:
    """The answer for a pull request or a job summary."""
    title = _TITLES[answer.outcome] if answer.finished else "⏳ under way"
    lines = [f"### {title}: [{cell(tuning.name)}]({url})", "", *(f"- {cell(reason)}" for reason in answer.reasons)]
    if answer.config is not None:
        lines += ["", "| parameter | default | better |", "| --- | ---: | ---: |"]
        config = answer.smallest or answer.config
        lines += [
            f"| {cell(name)} | {cell(shown(tuning.default[name]))} | {cell(shown(config[name]))} |" for name in config
        ]
        if answer.smallest is not None:
            lines += ["", f"The smallest recipe that keeps the gain: {cell(config_text(config, tuning.default))}."]
    return "\n".join(lines) + "\n"


def _without_one(tuning: Tuning) -> Outcome:
    if tuning.outcome == Tuning.Outcome.NOTHING_BETTER:
        return "nothing_better"
    return "budget_too_small" if tuning.outcome == Tuning.Outcome.BUDGET_TOO_SMALL else "error"
