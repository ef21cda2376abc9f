"""Scaling of an experiment: points, law with intervals, advice."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.scaling import Parameter, ScalingLaw
from experiments.analysis.scaling_points import MIN_EFFICIENCY_RATIO, Instances
from experiments.api.finding import find_experiment
from experiments.api.plumbing.auth import READ, member_of
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.scaling import Point, groups_of, scaling_of
from experiments.registry.errors import Conflict
from experiments.registry.metrics.normalisation import MOST_CPUS

router = Router(auth=READ, tags=["experiments"])


class ScalingPointOut(BaseModel):
    cpus: int
    instances: int
    variant: str = Field(description="The one with the highest throughput on so many CPUs")
    load: str = Field(description="What its load tool offered, or how many connections or users it had")
    tried: int = Field(description="Among how many variants it is the best")
    throughput_rps: float
    throughput_ci95_rps: tuple[float, float] | None
    ideal_rps: float
    efficiency_ratio: float
    efficiency_ci95: tuple[float, float] | None
    super_linear: bool
    runs: list[int]

    @classmethod
    def of(cls, point: Point) -> ScalingPointOut:
        return cls(
            cpus=point.group.cpus,
            instances=point.group.instances,
            variant=point.group.name,
            load=point.group.load.text,
            tried=point.tried,
            throughput_rps=point.mean.value,
            throughput_ci95_rps=point.mean.ci95,
            ideal_rps=point.ideal_rps,
            efficiency_ratio=point.efficiency.ratio,
            efficiency_ci95=point.efficiency.ci95,
            super_linear=point.efficiency.super_linear,
            runs=[one.number for one in point.group.repetitions],
        )


class ParameterOut(BaseModel):
    value: float
    se: float | None
    ci95: tuple[float, float] | None

    @classmethod
    def of(cls, parameter: Parameter) -> ParameterOut:
        return cls(value=parameter.value, se=parameter.se, ci95=parameter.ci95)


class LawOut(BaseModel):
    kind: str = Field(description="usl, or amdahl when nothing is lost to consistency")
    gamma_rps: ParameterOut
    alpha: ParameterOut
    beta: ParameterOut
    peak_cpus: float | None = Field(description="Only when it is real: beta's interval excludes 0, and it is near")
    peak_rps: float | None
    limit_rps: float | None = Field(description="What no number of CPUs can exceed by this law")
    limit_ci95_rps: tuple[float, float] | None = Field(description="Null where the data do not bound it")

    @classmethod
    def of(cls, law: ScalingLaw) -> LawOut:
        peak = law.peak
        return cls(
            kind=law.kind,
            gamma_rps=ParameterOut.of(law.gamma),
            alpha=ParameterOut.of(law.alpha),
            beta=ParameterOut.of(law.beta),
            peak_cpus=peak.cpus if peak else None,
            peak_rps=peak.throughput_rps if peak else None,
            limit_rps=law.limit_rps,
            limit_ci95_rps=law.limit_ci95_rps,
        )


class AdviceOut(BaseModel):
    instances: int
    cpus_each: int
    total_rps: float = Field(description="A prediction: verify it by a run")
    single_rps: float

    @classmethod
    def of(cls, advice: Instances) -> AdviceOut:
        return cls(
            instances=advice.instances,
            cpus_each=advice.cpus_each,
            total_rps=advice.total_rps,
            single_rps=advice.single_rps,
        )


class ScalingOut(BaseModel):
    points: list[ScalingPointOut]
    several_instances: list[ScalingPointOut]
    law: LawOut | None
    advice: AdviceOut | None
    sentences: list[str]


@router.get("/{int:experiment_id}/scaling", response=ScalingOut)
def experiment_scaling(
    request: HttpRequest,
    experiment_id: int,
    total_cpus: int | None = Query(None, ge=1, le=MOST_CPUS, description="What the advice is for"),
    cpus_per_node: int | None = Query(None, ge=1, le=MOST_CPUS),
    min_efficiency_ratio: float = Query(MIN_EFFICIENCY_RATIO, gt=0, le=1),
) -> ScalingOut:
    """Throughput against CPUs, for an experiment whose variants ran on different numbers of them (else 409)."""
    experiment = find_experiment(member_of(request), experiment_id)
    groups = groups_of(experiment, list(experiment.variants.all()), experiment_runs(experiment))
    found = scaling_of(
        groups, total_cpus=total_cpus, cpus_per_node=cpus_per_node, min_efficiency_ratio=min_efficiency_ratio
    )
    if found is None:
        raise Conflict("The counted runs of this experiment are not on two different numbers of CPUs.")
    return ScalingOut(
        points=[ScalingPointOut.of(point) for point in found.points],
        several_instances=[ScalingPointOut.of(point) for point in found.several],
        law=LawOut.of(found.law) if found.law else None,
        advice=AdviceOut.of(found.advice) if found.advice else None,
        sentences=list(found.sentences),
    )
