"""The verdicts of an experiment: every candidate against the baseline, by its stop rule, corrected for their number."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from experiments.analysis import wording
from experiments.analysis.families import AdjustedFamily, Family, benjamini_hochberg, families_of, holm
from experiments.analysis.sequential import Standing, StopRule, standing_of
from experiments.analysis.verdict import Verdict, judge
from experiments.judging.verdicts.arms import Conditions
from experiments.judging.verdicts.undecided import Undeciding
from experiments.models import Experiment, Run, StoredVerdict, Variant
from experiments.registry.experiments.rules import stop_rule_of
from experiments.registry.metrics.own_metrics import followed_metrics, metric_named, metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec, label_of
from experiments.registry.runs.summary import figure

EXPLORED = (
    "throughput_rps",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p90_ms",
    "latency_p99_ms",
    "cpu_ms_per_request",
)
"""Judged beside the metrics that decide, where the runs have them."""


@dataclass(frozen=True)
class Compared:
    """One candidate against the baseline for one metric. `family` is None when there is no other comparison.

    `is_sequential`: all repetitions of the one ran before those of the other.
    """

    baseline: Variant
    candidate: Variant
    metric: str
    decides: bool
    standing: Standing
    family: Family | None = None
    is_sequential: bool = False

    @property
    def verdict(self) -> Verdict:
        return self.standing.verdict


def comparisons_of(
    experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run], *, spent: bool
) -> list[Compared]:
    """Judge all pairs of the experiment. `spent`: no block will follow, so the last look is due."""
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return []
    candidates = [variant for variant in variants if variant.pk != baseline.pk]
    rule = stop_rule_of(experiment, len(candidates))
    compared = [run for run in runs if experiment.compares(run.block)]
    found = []
    for metric, spec in _judged_metrics(experiment, compared).items():
        values = arms_of(compared, metric)
        decides = metric in experiment.deciding_metrics
        for candidate in candidates:
            standing = _standing(
                experiment,
                rule if decides else StopRule(),
                values.get(baseline.pk, {}),
                values.get(candidate.pk, {}),
                spec,
                spent=spent,
            )
            sequential = experiment.is_sequential
            found.append(Compared(baseline, candidate, metric, decides, standing, is_sequential=sequential))
    return with_families(found, alpha=rule.family_alpha)


def arms_of(runs: Sequence[Run], metric: str) -> dict[int, dict[int, float]]:
    """The figures that count, by variant and block; what is missing is no repetition."""
    found: dict[int, dict[int, float]] = {}
    for run in runs:
        value = counted_figure(run, metric)
        if value is not None and run.variant_id is not None and run.block is not None:
            found.setdefault(run.variant_id, {})[run.block] = value
    return found


def counted_figure(run: Run, metric: str) -> float | None:
    """The run's figure when it counts. An invalid run, or latency that saturation hides, is a missing repetition.

    So is a figure of 0 or below, which has no logarithm: verdicts compare ratios.
    """
    value = figure(run, metric) if run.is_usable else None
    return value if value is not None and value > 0 else None


def store_verdicts(experiment: Experiment, *, spent: bool = False) -> list[Compared]:
    """Judge every candidate against the baseline again and store what came out. Call inside a transaction."""
    variants = list(experiment.variants.all())
    runs = finished_runs(experiment)
    seconds = seconds_per_run(runs)
    compared = comparisons_of(experiment, variants, runs, spent=spent)
    conditions = Conditions(experiment, runs)
    undeciding = Undeciding(experiment, runs)
    for one in compared:
        said, undecided = sentence_of(one, seconds), ""
        if one.verdict.outcome == "invalid":
            undecided, said = undeciding.reason(one.baseline, one.candidate, one.metric, one.verdict, said)
        stands = conditions.stand(one.baseline, one.candidate, one.metric, one.verdict.outcome, said)
        StoredVerdict.objects.update_or_create(
            experiment=experiment,
            baseline=one.baseline,
            candidate=one.candidate,
            metric=one.metric,
            defaults={
                "outcome": stands.outcome,
                "sentence": stands.sentence,
                "numbers": numbers_of(one) | {"undecided": undecided} | stands.conditions,
            },
        )
    return compared


def finished_runs(experiment: Experiment) -> list[Run]:
    """Its runs that have ended, in the order of blocks; profiled twins are none of them."""
    finished = experiment.runs.kept().plain().filter(state=Run.State.FINISHED)
    return list(finished.order_by("block", "id").defer("spec", "findings"))


def seconds_per_run(runs: Sequence[Run]) -> float | None:
    """How long a run of these took on the average; None when none of them says."""
    took = [(run.finished_at - run.started_at).total_seconds() for run in runs if run.started_at and run.finished_at]
    return sum(took) / len(took) if took else None


def judge_aa(experiment: Experiment, runs: Sequence[Run], baseline: Variant) -> Verdict:
    """The A/A check: its runs in pairs, which of the two is called the candidate decided by a seeded coin."""
    values = arms_of(runs, experiment.primary_metric).get(baseline.pk, {})
    a: list[float | None] = []
    b: list[float | None] = []
    for pair in range(experiment.AA_PAIRS):
        swapped = random.Random(f"{experiment.seed}/aa/{pair}").random() < 0.5  # noqa: S311 - repeatable on purpose
        first, second = values.get(2 * pair), values.get(2 * pair + 1)
        a.append(second if swapped else first)
        b.append(first if swapped else second)
    return judge(
        a,
        b,
        higher_is_better=metric_named(experiment.team_id, experiment.primary_metric).higher_is_better,
        margin_ratio=experiment.margin_ratio,
        design="blocked",
    )


def words_of(metric: str) -> wording.Words:
    """Rates and latencies are faster or slower; other figures are better or worse."""
    return wording.SPEED if metric == "throughput_rps" or metric.startswith("latency_") else wording.PLAIN


def numbers_of(compared: Compared) -> dict[str, Any]:
    """The verdict and what it rests on, as stored and given by the API."""
    numbers = _json(asdict(compared.verdict))
    numbers["decides"] = compared.decides
    looks = compared.standing.looks
    numbers["looks"] = looks[-1].number if looks else 0
    numbers["family"] = asdict(compared.family) if compared.family else None
    return numbers


def _judged_metrics(experiment: Experiment, runs: Sequence[Run]) -> dict[str, MetricSpec]:
    """What decides, and what the runs have beside it: some known metrics, and the team's own ones that it follows."""
    measured = {name for run in runs for name in run.metrics}
    explored = [name for name in EXPLORED if name in measured]
    deciding = experiment.deciding_metrics
    known = metrics_of(experiment.team_id, [*deciding, *explored])
    return {name: known[name] for name in [*deciding, *explored]} | followed_metrics(experiment.team_id, measured)


def _standing(
    experiment: Experiment,
    rule: StopRule,
    a: Mapping[int, float],
    b: Mapping[int, float],
    metric: MetricSpec,
    *,
    spent: bool,
) -> Standing:
    blocks = sorted({*a, *b})
    left, right = [a.get(block) for block in blocks], [b.get(block) for block in blocks]
    higher = metric.higher_is_better
    if not experiment.is_sequential:
        return standing_of(
            rule, left, right, higher_is_better=higher, margin_ratio=experiment.margin_ratio, spent=spent
        )
    verdict = judge(left, right, higher_is_better=higher, margin_ratio=experiment.margin_ratio, design="independent")
    return Standing(verdict, (), min(verdict.n_a, verdict.n_b), None)


def with_families(compared: Sequence[Compared], *, alpha: float) -> list[Compared]:
    """Holm over what decides, Benjamini-Hochberg over what is looked at beside it."""
    found = list(compared)
    methods: tuple[tuple[bool, Any, float], ...] = ((True, holm, alpha), (False, benjamini_hochberg, 0.05))
    for decides, method, level in methods:
        places = [i for i, one in enumerate(found) if one.decides is decides and one.verdict.p_value is not None]
        family: AdjustedFamily = method([found[i].verdict.p_value for i in places])
        for i, member in zip(places, families_of(family, level), strict=True):
            found[i] = replace(found[i], family=member)
    return found


def sentence_of(compared: Compared, seconds_per_repetition: float | None) -> str:
    said = wording.sentence(
        compared.verdict,
        compared.baseline.name,
        compared.candidate.name,
        label_of(compared.metric),
        words=words_of(compared.metric),
        seconds_per_repetition=seconds_per_repetition,
    )
    said = wording.with_family(said, compared.verdict, compared.family)
    return wording.with_order(said) if compared.is_sequential and compared.verdict.deciding_pct else said


def _json(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
