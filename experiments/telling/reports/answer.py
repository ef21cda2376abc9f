"""The answer of an experiment: its stored verdicts, and all of them in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis.number_text import percent_with_interval
from experiments.judging.verdicts.verdict_numbers import VerdictNumbers
from experiments.models import Experiment, Run
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec

_GROUPS = (
    (("better",), "is better"),
    (("better_size_uncertain",), "looks better"),
    (("no_practical_difference",), "does not differ in practice"),
    (("worse_size_uncertain",), "looks worse"),
    (("worse",), "is worse"),
    (("not_held",), "does not hold among all comparisons"),
    (("inconclusive",), "is open"),
    (("fails",), "fails"),
    (("running",), "is still running"),
    (("too_few",), "has too few repetitions"),
    (("baseline", "candidate", "zero", "invalid"), "has no verdict"),
)
_PLURALS = {"is": "are", "looks": "look", "does": "do", "has": "have", "fails": "fail"}
MOST_NAMED = 5
"""Of the candidates with one outcome, those with the largest changes; the table below names all."""


@dataclass(frozen=True)
class Change:
    """One candidate against the baseline for one metric, as judged; changes in percent of the baseline.

    `adjusted_p` is `p_value` corrected for the `family_size` comparisons made together, None when it is the only one.
    `shown` is what its outcome is called. `looks` counts how often the stop rule had looked at the data.
    """

    metric: MetricSpec
    baseline: str
    candidate: str
    outcome: str
    sentence: str
    decides: bool
    n_baseline: int
    n_candidate: int
    estimate_pct: float | None
    ci95_pct: tuple[float, float] | None
    p_value: float | None
    adjusted_p: float | None
    family_size: int
    family_method: str
    stands: bool
    looks: int | None
    shown: str = ""


def changes_of(experiment: Experiment) -> list[Change]:
    """The stored verdicts, those that decide first. A metric that is no longer known is left out."""
    stored = experiment.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric")
    metrics = metrics_of(experiment.team_id, (one.metric for one in stored))
    names = list(dict.fromkeys([*experiment.deciding_metrics, *metrics]))
    found = []
    for verdict in sorted((one for one in stored if one.metric in metrics), key=lambda one: names.index(one.metric)):
        numbers = VerdictNumbers.of(verdict)
        family = numbers.family
        decides = verdict.metric in experiment.deciding_metrics
        found.append(
            Change(
                metric=metrics[verdict.metric],
                baseline=verdict.baseline.name,
                candidate=verdict.candidate.name,
                outcome=verdict.outcome,
                shown=verdict.shown,
                sentence=verdict.sentence,
                decides=decides,
                n_baseline=numbers.n_a,
                n_candidate=numbers.n_b,
                estimate_pct=numbers.estimate_pct,
                ci95_pct=numbers.ci95_pct,
                p_value=numbers.p_value,
                adjusted_p=family.adjusted_p if family else None,
                family_size=family.size if family else 1,
                family_method=family.method if family else "",
                stands=family.stands if family else True,
                looks=numbers.looks,
            )
        )
    return found


def answer_of(experiment: Experiment, changes: Sequence[Change], runs: Sequence[Run]) -> str:
    """One sentence on the primary metric; what is missing when there is no verdict."""
    deciding = [change for change in changes if change.metric.name == experiment.primary_metric]
    open_runs = sum(run.is_live for run in runs)
    if not runs:
        return "No answer yet: the experiment has not been launched."
    if not deciding:
        if open_runs:
            return f"No answer yet: {len(runs) - open_runs} of {len(runs)} runs are finished."
        return "No answer: there is no candidate to compare with the baseline, or no run that counts."
    text = deciding[0].sentence if len(deciding) == 1 else _together(deciding)
    return f"So far ({len(runs) - open_runs} of {len(runs)} runs): {text}" if open_runs else text


def _together(changes: Sequence[Change]) -> str:
    """Several candidates: "Throughput against a: b (+6.3 % [5.5, 7.2]) is better; c and d do not differ ..."."""
    parts = []
    for outcomes, words in _GROUPS:
        these = [one for one in changes if one.shown in outcomes]
        if len(these) > MOST_NAMED:
            these.sort(key=lambda one: abs(one.estimate_pct or 0.0), reverse=True)
        named = [_named(one) for one in these[:MOST_NAMED]]
        if more := len(these) - len(named):
            named.append(f"{more} other{'s' if more > 1 else ''}")
        if named:
            verb, _, rest = words.partition(" ")
            verb = _PLURALS[verb] if len(named) > 1 else verb
            parts.append(f"{_listed(named)} {verb} {rest}".rstrip())
    return f"{changes[0].metric.label} against {changes[0].baseline}: {'; '.join(parts)}."


def _named(change: Change) -> str:
    return change.candidate if change.estimate_pct is None else f"{change.candidate} ({change_text(change)})"


def change_text(change: Change) -> str:
    """+6.3 % [5.5, 7.2]; a dash when it cannot be said."""
    return "—" if change.estimate_pct is None else percent_with_interval(change.estimate_pct, change.ci95_pct)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
