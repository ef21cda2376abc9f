"""The report of an experiment: the question, the answer, and all that a reader needs to believe it or to repeat it.

One object, rendered as a page, as Markdown, as CSV and by the API; none of them knows more than the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from django.conf import settings
from django.utils import timezone
from pydantic import Field

from experiments.analysis.interval import Mean, mean_of
from experiments.analysis.percentiles import PercentilePoint
from experiments.judging.comparing.comparison import comparable_runs, configuration_diff
from experiments.judging.evidence.host_canaries import hosts_before
from experiments.judging.evidence.roles import limit_of_runs
from experiments.models import Experiment, Run, Variant
from experiments.registry.documents.configuration import ConfigurationDiff
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.own_load import OWN_LOAD
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.latency_spectra import merged_curves
from experiments.registry.runs.summary import figure
from experiments.telling.reports.answer import Change, answer_of, changes_of
from experiments.telling.reports.machines import Machine, machines_of, versions_of
from experiments.telling.reports.rankings import ReportMap, ReportRanking, report_map, report_ranking
from experiments.telling.reports.reasons import Reasons, reasons_of
from experiments.telling.reports.repeat import Repeat, repeat_of
from experiments.telling.reports.runs import Remark, remarks_on

WHERE_THERE_ARE = Field(exclude_if=lambda found: not found)
"""Of a single server the report says nothing of members, of two variants nothing of a ranking."""


@dataclass(frozen=True)
class ReportVariant:
    """`runs` were executed, `counted` of them are repetitions whose figures count.

    `members` are the roles of the further members of a system, with their hosts.
    """

    name: str
    is_baseline: bool
    application: str
    recipe: str
    parameters: tuple[tuple[str, str], ...]
    sut: str
    drivers: str
    runs: int
    counted: int
    members: Annotated[tuple[tuple[str, str], ...], WHERE_THERE_ARE] = ()


@dataclass(frozen=True)
class VariantFigure:
    """One metric of one variant: the mean of its counted repetitions, and the change against the baseline."""

    variant: str
    is_baseline: bool
    mean: Mean | None
    change: Change | None


@dataclass(frozen=True)
class MetricFigures:
    """One metric over all variants, in their order."""

    metric: MetricSpec
    decides: bool
    figures: tuple[VariantFigure, ...]


@dataclass(frozen=True)
class Repetition:
    """A counted run and its figures, by the name of the metric."""

    number: int
    block: int | None
    variant: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class VariantCurve:
    """The percentiles of all samples of a variant's repetitions, their histograms added up."""

    variant: str
    runs: int
    samples: int
    points: tuple[PercentilePoint, ...]


@dataclass(frozen=True)
class Limit:
    """Which member of a system of several hosts limited a variant, by the means of its repetitions; "" for none."""

    variant: str
    role: str
    sentence: str


@dataclass(frozen=True)
class People:
    """Who asked, and who launched runs; "" and nothing where nobody is on record."""

    asked_by: str
    launched_by: tuple[str, ...]


@dataclass(frozen=True)
class Dates:
    created: datetime
    first_run_started: datetime | None
    last_run_finished: datetime | None


@dataclass(frozen=True)
class ExperimentReport:
    """`answer` is the verdict in one sentence, `hosts_before` what checks of its hosts said before it ("" without any),
    `state_reason` why it stopped or waits, where that needs saying.

    `compared_runs` are the numbers of the runs in `difference`. `ranking` and `factor_map` are of the primary metric:
    where three variants have it, and where they differ in two factors.
    """

    number: int
    name: str
    question: str
    state: str
    state_reason: str
    hosts_before: str
    answer: str
    changes: tuple[Change, ...]
    margin_ratio: float
    primary: MetricSpec
    variants: tuple[ReportVariant, ...]
    metrics: tuple[MetricFigures, ...]
    repetitions: tuple[Repetition, ...]
    latency_basis: str
    curves: tuple[VariantCurve, ...]
    compared_runs: tuple[int, ...]
    compared_variants: tuple[str, ...]
    difference: ConfigurationDiff
    left_out: tuple[Remark, ...]
    doubtful: tuple[Remark, ...]
    machines: tuple[Machine, ...]
    versions: tuple[tuple[str, str], ...]
    repeat: Repeat
    dates: Dates
    people: People
    made_at: datetime
    made_by_version: str
    reasons: tuple[Reasons, ...]
    limits: Annotated[tuple[Limit, ...], WHERE_THERE_ARE]
    ranking: Annotated[ReportRanking | None, WHERE_THERE_ARE]
    factor_map: Annotated[ReportMap | None, WHERE_THERE_ARE]


NOTHING_DIFFERS = ConfigurationDiff((), (), ())


def report_of(experiment: Experiment, *, base_url: str) -> ExperimentReport:
    """Build the report from what is stored. `base_url` is where this installation answers, without a slash at the end.

    The number of queries does not depend on the number of runs.
    """
    variants = list(
        experiment.variants.select_related("application", "recipe", "sut__profile", "drivers").prefetch_related(
            "drivers__hosts__profile"
        )
    )
    runs = list(experiment.runs.kept().plain().with_names().defer(None).defer("spec").order_by("number"))
    comparing = [run for run in runs if experiment.compares(run.block)]
    counted = {variant.pk: [run for run in comparing if run.repeats(variant)] for variant in variants}
    changes = changes_of(experiment)
    measured = {name for run in comparing for name in run.metrics}
    metrics = metrics_of(experiment.team_id, measured.union(experiment.deciding_metrics))
    newest = [counted[variant.pk][-1] for variant in variants if counted[variant.pk]]
    compared = comparable_runs(experiment.team, [run.number for run in newest])
    return ExperimentReport(
        number=experiment.pk,
        name=experiment.name,
        question=experiment.question,
        state=str(experiment.get_state_display()),
        state_reason=experiment.state_reason,
        hosts_before=hosts_before(experiment).sentence,
        answer=answer_of(experiment, changes, runs),
        changes=tuple(changes),
        margin_ratio=experiment.margin_ratio,
        primary=metrics[experiment.primary_metric],
        variants=tuple(_variant(variant, runs, counted[variant.pk]) for variant in variants),
        metrics=_figures(experiment, metrics, variants, counted, changes),
        repetitions=tuple(_repetition(run, variant, metrics) for variant in variants for run in counted[variant.pk]),
        latency_basis=str(content_of(experiment.workload).driver.latency_basis).replace("_", " "),
        curves=_curves(variants, counted),
        compared_runs=tuple(run.number for run in compared) if len(compared) > 1 else (),
        compared_variants=tuple(str(run.variant) for run in compared) if len(compared) > 1 else (),
        difference=configuration_diff(compared) if len(compared) > 1 else NOTHING_DIFFERS,
        left_out=remarks_on(experiment, runs, counts=False),
        doubtful=remarks_on(experiment, runs, counts=True),
        machines=machines_of(variants, compared),
        versions=versions_of(compared),
        repeat=repeat_of(experiment, variants, runs, base_url),
        dates=_dates(experiment, runs),
        people=_people(experiment, runs),
        made_at=timezone.now(),
        made_by_version=settings.VERSION,
        reasons=reasons_of(experiment),
        limits=_limits(variants, counted),
        ranking=report_ranking(experiment, variants, comparing, metrics[experiment.primary_metric]),
        factor_map=report_map(experiment, variants, comparing, metrics[experiment.primary_metric]),
    )


def _variant(variant: Variant, runs: Sequence[Run], counted: Sequence[Run]) -> ReportVariant:
    return ReportVariant(
        name=variant.name,
        is_baseline=variant.is_baseline,
        application=str(variant.application),
        recipe=str(variant.recipe),
        parameters=(
            *((name, str(value)) for name, value in variant.parameters.items()),
            *((name, f"{own:.12g}") for name in OWN_LOAD if (own := getattr(variant, name)) is not None),
        ),
        sut=variant.sut.name,
        drivers=str(variant.drivers),
        runs=sum(run.variant_id == variant.pk for run in runs),
        counted=len(counted),
        members=tuple((role, host.name) for role, host in variant.drivers.members.items()),
    )


def _figures(
    experiment: Experiment,
    metrics: Mapping[str, MetricSpec],
    variants: Sequence[Variant],
    counted: Mapping[int, Sequence[Run]],
    changes: Sequence[Change],
) -> tuple[MetricFigures, ...]:
    """Those that decide, and every other metric that a counted run has."""
    deciding = experiment.deciding_metrics
    of_pair = {(change.metric.name, change.candidate): change for change in changes}
    found = []
    for name in dict.fromkeys([*deciding, *metrics]):
        means = [
            mean_of([value for run in counted[variant.pk] if (value := figure(run, name)) is not None])
            for variant in variants
        ]
        if name not in deciding and all(mean is None for mean in means):
            continue
        figures = tuple(
            VariantFigure(variant.name, variant.is_baseline, mean, of_pair.get((name, variant.name)))
            for variant, mean in zip(variants, means, strict=True)
        )
        found.append(MetricFigures(metrics[name], name in deciding, figures))
    return tuple(found)


def _repetition(run: Run, variant: Variant, metrics: Iterable[str]) -> Repetition:
    figures = {name: value for name in metrics if (value := figure(run, name)) is not None}
    return Repetition(run.number, run.block, variant.name, figures)


def _curves(variants: Sequence[Variant], counted: Mapping[int, Sequence[Run]]) -> tuple[VariantCurve, ...]:
    merged = merged_curves({pk: [run for run in runs if not run.hides_latency] for pk, runs in counted.items()})
    return tuple(
        VariantCurve(variant.name, len(one.runs), one.curve.samples, one.curve.points)
        for variant in variants
        if (one := merged.get(variant.pk)) and one.curve.points
    )


def _limits(variants: Sequence[Variant], counted: Mapping[int, Sequence[Run]]) -> tuple[Limit, ...]:
    """One for each variant of a system; () where every variant is a single server."""
    found = ((variant.name, limit_of_runs(counted[variant.pk])) for variant in variants)
    return tuple(Limit(name, limit.role, limit.sentence) for name, limit in found if limit is not None)


def _dates(experiment: Experiment, runs: Sequence[Run]) -> Dates:
    started = [run.started_at for run in runs if run.started_at]
    finished = [run.finished_at for run in runs if run.finished_at]
    return Dates(experiment.created_at, min(started, default=None), max(finished, default=None))


def _people(experiment: Experiment, runs: Sequence[Run]) -> People:
    launched = sorted({run.created_by.get_username() for run in runs if run.created_by})
    return People(experiment.created_by.get_username() if experiment.created_by else "", tuple(launched))
