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
    def outcome(self) -> str:
        return str(self.verdict.outcome)


@dataclass(frozen=True)
class VerdictTable:
    """Candidates by metrics, those that decide first. A cell is None where nothing was judged."""

    metrics: tuple[MetricSpec, ...]
    deciding: frozenset[str]
    rows: tuple[tuple[Variant, tuple[VerdictCell | None, ...]], ...]


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
    return VerdictTable(tuple(metrics[name] for name in judged), deciding, rows)


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
    look = _TONES.get(verdict.outcome, "heat-open")
    if family and look in ("heat-good", "heat-bad"):
        p = f"p {family['adjusted_p']:.2g}" if family["adjusted_p"] >= 0.0001 else "p < 0.0001"
        note = f"{p} of {family['size']}"
        if not family["stands"]:
            look, note = "heat-open", f"{note}: does not hold"
    return VerdictCell(verdict, look, _ratio(numbers.get("estimate_pct")), _ratio(low), _ratio(high), note, decides)


def _ratio(value_pct: float | None) -> float | None:
    return None if value_pct is None else value_pct / 100
