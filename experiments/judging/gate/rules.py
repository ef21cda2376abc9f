"""What a gate may be asked beside the experiment's own rules: other metrics, another margin, another baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from experiments.analysis.limits import ALPHA
from experiments.analysis.sequential import Standing
from experiments.analysis.sessions import judge_session
from experiments.judging.gate.reference_runs import ReferenceRuns, reference_runs
from experiments.judging.verdicts.arms import Conditions, behind_driver, with_full_driver
from experiments.judging.verdicts.judging import (
    Compared,
    comparisons_of,
    counted_figure,
    finished_runs,
    numbers_of,
    sentence_of,
    with_families,
)
from experiments.models import Experiment, Run, Variant
from experiments.registry.errors import RequestError
from experiments.registry.experiments.rules import MOST_GATE_METRICS
from experiments.registry.metrics.own_metrics import check_metrics, metrics_of

Inconclusive = Literal["neutral", "pass", "fail"]


@dataclass(frozen=True)
class GateRules:
    """What is left out is as in the experiment.

    `inconclusive`: what too little data means. `baseline`: "branch:main", "label:build=17", "tag:release",
    "pinned:NAME" or "run:12" in place of the baseline variant.
    """

    metrics: tuple[str, ...] = ()
    margin_ratio: float | None = None
    inconclusive: Inconclusive = "neutral"
    baseline: str = ""

    def check(self, team_id: int) -> None:
        """RequestError when they make no sense for this team."""
        if len(self.metrics) > MOST_GATE_METRICS:
            raise RequestError(f"A gate decides by at most {MOST_GATE_METRICS} metrics.", field="metric")
        check_metrics(team_id, self.metrics, field="metric")
        if self.margin_ratio is not None and not 0 < self.margin_ratio < 1:
            raise RequestError("A margin lies between 0 and 100 %.", field="margin_pct")

    @property
    def as_stored(self) -> bool:
        """Whether the stored verdicts answer this."""
        return not self.metrics and self.margin_ratio is None and not self.baseline


@dataclass(frozen=True)
class Judged:
    """One candidate against the baseline for one metric, as the gate sees it."""

    baseline: str
    candidate: str
    metric: str
    outcome: str
    sentence: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """All comparisons, those of `metrics` decide; `notes` are sentences about where the figures come from."""

    judged: tuple[Judged, ...]
    metrics: tuple[str, ...]
    candidates: tuple[Variant, ...]
    baseline: Variant | None
    notes: tuple[str, ...] = ()


def evidence_of(experiment: Experiment, rules: GateRules) -> Evidence:
    """What the gate decides by: the stored verdicts, or the same runs judged by other rules."""
    rules.check(experiment.team_id)
    variants = list(experiment.variants.all())
    own = next((variant for variant in variants if variant.is_baseline), None)
    candidates = tuple(variant for variant in variants if variant != own)
    # One that is named twice decides once, and is corrected for once.
    metrics = tuple(dict.fromkeys(rules.metrics)) or experiment.deciding_metrics
    if rules.as_stored:
        stored = experiment.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric")
        judged = tuple(
            Judged(one.baseline.name, one.candidate.name, one.metric, one.outcome, one.sentence, one.numbers)
            for one in stored
        )
        return Evidence(judged, metrics, candidates, own)
    # Not saved: the experiment as it would be with these rules.
    experiment.primary_metric, experiment.gate_metrics = metrics[0], list(metrics[1:])
    experiment.margin_ratio = rules.margin_ratio or experiment.margin_ratio
    runs = finished_runs(experiment)
    if not rules.baseline:
        return Evidence(_among_variants(experiment, variants, runs), metrics, candidates, own)
    candidates = candidates or tuple(variants)
    found = [(variant, reference_runs(experiment, variant, runs, rules.baseline)) for variant in candidates]
    notes = tuple(dict.fromkeys(reference.note for _, reference in found))
    return Evidence(_against(experiment, found, runs, metrics), metrics, candidates, None, notes)


def _among_variants(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> tuple[Judged, ...]:
    conditions = Conditions(experiment, runs)
    judged = []
    for one in comparisons_of(experiment, variants, runs, spent=True):
        stands = conditions.stand(one.baseline, one.candidate, one.metric, one.verdict.outcome, sentence_of(one, None))
        numbers = numbers_of(one) | stands.conditions
        names = one.baseline.name, one.candidate.name
        judged.append(Judged(*names, one.metric, stands.outcome, stands.sentence, numbers))
    return tuple(judged)


def _against(
    experiment: Experiment,
    found: Sequence[tuple[Variant, ReferenceRuns]],
    runs: Sequence[Run],
    metrics: Sequence[str],
) -> tuple[Judged, ...]:
    """Every candidate, which is one session, against runs of other sessions."""
    compared: list[Compared] = []
    arms: list[tuple[list[int], list[int]]] = []
    for metric, spec in metrics_of(experiment.team_id, metrics).items():
        for candidate, reference in found:
            own = [
                run
                for run in runs
                if run.variant_id == candidate.pk and run.is_usable and experiment.compares(run.block)
            ]
            verdict = judge_session(
                _figures(reference.sessions, metric),
                _figures([own], metric)[0],
                earlier=_figures(reference.earlier, metric),
                higher_is_better=spec.higher_is_better,
                margin_ratio=experiment.margin_ratio,
            )
            standing = Standing(verdict, (), min(verdict.n_a, verdict.n_b), None)
            compared.append(Compared(Variant(name=reference.name), candidate, metric, True, standing))
            arms.append(([run.pk for session in reference.sessions for run in session], [run.pk for run in own]))
    full = with_full_driver(Run.objects.filter(pk__in={pk for pair in arms for arm in pair for pk in arm}))
    judged = []
    for one, pair in zip(with_families(compared, alpha=ALPHA), arms, strict=True):
        stands = behind_driver(pair, full, one.metric, one.verdict.outcome, sentence_of(one, None))
        names = one.baseline.name, one.candidate.name
        numbers = numbers_of(one) | stands.conditions
        judged.append(Judged(*names, one.metric, stands.outcome, stands.sentence, numbers))
    return tuple(judged)


def _figures(sessions: Iterable[Sequence[Run]], metric: str) -> list[list[float]]:
    """The figures that count, by session."""
    return [[value for run in session if (value := counted_figure(run, metric)) is not None] for session in sessions]
