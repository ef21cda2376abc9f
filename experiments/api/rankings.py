"""The variants of an experiment by a figure, what its two factors do, and which variant is the baseline."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.interval import Mean
from experiments.analysis.two_factors import Change
from experiments.api.finding import find_experiment
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.shapes import Body
from experiments.asking.launching.rebaselining import change_baseline
from experiments.judging.comparing.factors import Level, experiment_factors
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.rankings import FactorMap, RankedVariant, map_of, ranking_of
from experiments.models import Experiment, Member
from experiments.registry.metrics.own_metrics import metric_named

router = Router(auth=READ, tags=["experiments"])


class RankedOut(BaseModel):
    """Best first; `standing` says whether a variant can be told from the best."""

    variant: str
    is_baseline: bool
    mean: float
    ci95: tuple[float, float] | None
    n: int = Field(description="Repetitions that count")
    change_pct: float = Field(description="Against the best")
    change_ci95_pct: tuple[float, float] | None
    adjusted_p: float | None = Field(description="Corrected for all pairs of variants (Holm)")
    standing: str = Field(description="best, tied (not distinguishable from the best), behind, or open: too few")

    @classmethod
    def of(cls, line: RankedVariant) -> RankedOut:
        return cls(
            variant=line.variant.name,
            is_baseline=line.variant.is_baseline,
            mean=line.mean.value,
            ci95=line.mean.ci95,
            n=line.mean.n,
            change_pct=line.ranked.change_pct,
            change_ci95_pct=line.ranked.ci95_pct,
            adjusted_p=line.ranked.adjusted_p,
            standing=line.standing,
        )


class FactorCellOut(BaseModel):
    first: Level
    second: Level
    variant: str
    mean: float | None
    ci95: tuple[float, float] | None

    @classmethod
    def all_of(cls, found: FactorMap) -> list[FactorCellOut]:
        cells = []
        for first, row in zip(found.rows, found.cells, strict=True):
            for second, cell in zip(found.columns, row, strict=True):
                if cell is not None:
                    mean: Mean | None = cell.mean
                    cells.append(
                        cls(
                            first=first,
                            second=second,
                            variant=cell.variant.name,
                            mean=mean.value if mean else None,
                            ci95=mean.ci95 if mean else None,
                        )
                    )
        return cells


class FactorEffectOut(BaseModel):
    """What a level does in place of the baseline's: of one factor over all levels of the other, or of both together."""

    first: Level | None
    second: Level | None
    change_pct: float
    ci95_pct: tuple[float, float]
    adjusted_p: float | None = Field(description="Corrected for its family (Holm); null below five repetitions")
    stands: bool | None

    @classmethod
    def of(cls, change: Change, first: Level | None, second: Level | None) -> FactorEffectOut:
        return cls(
            first=first,
            second=second,
            change_pct=change.change_pct,
            ci95_pct=change.ci95_pct,
            adjusted_p=change.adjusted_p,
            stands=change.stands,
        )


class TwoFactorsOut(BaseModel):
    factors: tuple[str, str]
    cells: list[FactorCellOut]
    effects: list[FactorEffectOut] = Field(description="Empty until every pair of levels has three repetitions")
    together: list[FactorEffectOut] = Field(description="Beyond the product of what both do alone")

    @classmethod
    def of(cls, found: FactorMap) -> TwoFactorsOut:
        effects = found.effects
        if effects is None:
            return cls(factors=found.factors, cells=FactorCellOut.all_of(found), effects=[], together=[])
        return cls(
            factors=found.factors,
            cells=FactorCellOut.all_of(found),
            effects=[
                *(FactorEffectOut.of(one, found.rows[one.at[0]], None) for one in effects.first),
                *(FactorEffectOut.of(one, None, found.columns[one.at[0]]) for one in effects.second),
            ],
            together=[
                FactorEffectOut.of(one, found.rows[one.at[0]], found.columns[one.at[1]]) for one in effects.together
            ],
        )


class RankingOut(BaseModel):
    metric: str
    unit: str
    sentence: str = Field(description="Empty below three variants with a figure")
    ranking: list[RankedOut]
    two_factors: TwoFactorsOut | None = Field(description="Null unless the variants differ in exactly two factors")


class BaselineVariantIn(Body):
    variant: str = Field(min_length=1, max_length=120, description="The name of the variant to compare with")


@router.get("/{int:experiment_id}/ranking", response=RankingOut)
def experiment_ranking(
    request: HttpRequest,
    experiment_id: int,
    metric: str = Query("", max_length=60, description="Else the metric that the experiment is judged by"),
) -> RankingOut:
    """The variants from best to worst with what cannot be told apart, and what two factors do."""
    member = member_of(request)
    return _ranking(member, find_experiment(member, experiment_id), metric)


@router.put("/{int:experiment_id}/baseline", response=RankingOut, auth=LAUNCH)
def set_experiment_baseline(request: HttpRequest, experiment_id: int, payload: BaselineVariantIn) -> RankingOut:
    """Compare with another variant; an experiment that has ended is judged again. 409 while it is under way."""
    member = member_of(request)
    experiment = find_experiment(member, experiment_id)
    change_baseline(member, experiment, payload.variant)
    return _ranking(member, experiment, "")


def _ranking(member: Member, experiment: Experiment, metric: str) -> RankingOut:
    spec = metric_named(member.team_id, metric or experiment.primary_metric, field="metric")
    variants = list(experiment.variants.select_related("application", "recipe", "sut"))
    runs = [run for run in experiment_runs(experiment) if experiment.compares(run.block)]
    ranking = ranking_of(experiment, variants, runs, spec)
    two = map_of(experiment, experiment_factors(experiment, variants), variants, runs, spec)
    return RankingOut(
        metric=spec.name,
        unit=spec.unit,
        sentence=ranking.sentence if ranking else "",
        ranking=[RankedOut.of(line) for line in ranking.lines] if ranking else [],
        two_factors=TwoFactorsOut.of(two) if two else None,
    )
