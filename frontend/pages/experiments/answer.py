"""What an experiment says so far: its verdicts as a table, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.asking.launching.stopping import spent_s
from experiments.judging.verdicts.judging import seconds_per_run
from experiments.models import Experiment, Run, StoredVerdict, Variant
from experiments.models.experiments import UNDER_WAY
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec

_TONES = {
    "better": "heat-good",
    "better_size_uncertain": "heat-good",
    "worse": "heat-bad",
    "worse_size_uncertain": "heat-bad",
    "no_practical_difference": "heat-same",
    "fails": "heat-bad",
}


@dataclass(frozen=True)
class VerdictCell:
    """One verdict; `look` is its colour class, `note` what the correction for many comparisons makes of it."""

    verdict: StoredVerdict
    look: str
    change_ratio: float | None
    low_ratio: float | None
    high_ratio: float | None
    note: str
    decides: bool

    @property
    def shown(self) -> str:
        return self.verdict.shown


@dataclass(frozen=True)
class VerdictTable:
    """Candidates by metrics, those that decide first. A cell is None where nothing was judged.

    `open` are the candidates on which nothing is decided yet, for one reason, with the sentence of the first metric.
    """

    metrics: tuple[MetricSpec, ...]
    deciding: frozenset[str]
    rows: tuple[tuple[Variant, tuple[VerdictCell | None, ...]], ...]
    open: tuple[tuple[str, str], ...] = ()
    """Reason as it is shown -> sentence."""


@dataclass(frozen=True)
class Cost:
    """Machine time in seconds: spent, still queued, and at most what the stop rule may add beyond that."""

    spent_s: float
    queued_s: float
    may_add_s: float


def verdict_table(experiment: Experiment, verdicts: Sequence[StoredVerdict]) -> VerdictTable | None:
    """The stored verdicts; None without any. They need `candidate` loaded."""
    metrics = metrics_of(experiment.team_id, (verdict.metric for verdict in verdicts))
    judged = [name for name in dict.fromkeys([*experiment.deciding_metrics, *metrics]) if name in metrics]
    by_place = {(v.candidate_id, v.metric): v for v in verdicts}
    candidates = list({v.candidate_id: v.candidate for v in verdicts}.values())
    if not judged:
        return None
    deciding = frozenset(experiment.deciding_metrics)
    rows = tuple(
        (
            candidate,
            tuple(
                _cell(found, name in deciding) if (found := by_place.get((candidate.pk, name))) else None
                for name in judged
            ),
        )
        for candidate in candidates
    )
    undecided: set[int] = set()
    said: dict[str, list[tuple[Variant, VerdictCell]]] = {}
    for variant, cells in rows:
        if reason := _one_reason(cells):
            undecided.add(variant.pk)
            said.setdefault(reason, []).append((variant, next(cell for cell in cells if cell)))
    return VerdictTable(
        tuple(metrics[name] for name in judged),
        deciding,
        tuple(row for row in rows if row[0].pk not in undecided),
        tuple((why, _of_all(found)) for why, found in said.items()),
    )


def _one_reason(cells: Sequence[VerdictCell | None]) -> str:
    """Why none of these cells has a verdict; "" when one has, or when the reasons differ."""
    reasons = {cell.shown for cell in cells if cell is not None}
    return reasons.pop() if len(reasons) == 1 and all(c.verdict.outcome == "invalid" for c in cells if c) else ""


def _of_all(found: Sequence[tuple[Variant, VerdictCell]]) -> str:
    if len(found) == 1:
        return str(found[0][1].verdict.sentence)
    names = ", ".join(variant.name for variant, _ in found)
    return f"{names}: the same for every metric. Of the first: {found[0][1].verdict.sentence}"


def cost_of(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], run_s: float) -> Cost:
    """`run_s`: how long a run takes as long as none has ended."""
    each_s = seconds_per_run([run for run in runs if not run.is_live]) or run_s
    live = sum(run.is_live for run in runs)
    may_add_s = 0.0
    if experiment.state in UNDER_WAY:
        blocks = {run.block for run in runs if run.block is not None and run.block >= experiment.first_block}
        most = experiment.repetitions if experiment.stop_rule == Experiment.StopRule.FIXED else experiment.max_blocks
        may_add_s = max(0, most - len(blocks)) * len(variants) * each_s
        if experiment.max_hours is not None and experiment.stop_rule != Experiment.StopRule.FIXED:
            may_add_s = min(may_add_s, max(0.0, experiment.max_hours * 3600 - spent_s(runs) - live * each_s))
    return Cost(spent_s(runs), live * each_s, may_add_s)


def _cell(verdict: StoredVerdict, decides: bool) -> VerdictCell:
    numbers = verdict.numbers
    low, high = numbers.get("deciding_pct") or numbers.get("ci95_pct") or (None, None)
    family = numbers.get("family")
    note = ""
    look = _TONES.get(verdict.shown, "heat-open")
    if family and _TONES.get(verdict.outcome) in ("heat-good", "heat-bad"):
        p = f"p {family['adjusted_p']:.2g}" if family["adjusted_p"] >= 0.0001 else "p < 0.0001"
        note = f"{p} of {family['size']}"
    return VerdictCell(verdict, look, _ratio(numbers.get("estimate_pct")), _ratio(low), _ratio(high), note, decides)


def _ratio(value_pct: float | None) -> float | None:
    return None if value_pct is None else value_pct / 100
