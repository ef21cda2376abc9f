"""What the API says of experiments, and what it takes to make one."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from agents.profilers.choosing import ProfilerNames
from agents.running.canaries import CANARIES
from experiments.api.choices import ExperimentOrder, ExperimentState, StopRule, VerdictOutcome
from experiments.api.shapes import (
    Body,
    DriverNames,
    Flag,
    Labels,
    MemberNames,
    Named,
    Parameters,
    Priority,
    Reference,
    Retries,
    RunRow,
    Whole,
    experiment_url,
)
from experiments.asking.launching import launch
from experiments.asking.launching.editing import MAX_QUESTION
from experiments.asking.launching.forecast import Forecast
from experiments.judging.evidence.host_canaries import JudgedCanary
from experiments.judging.verdicts.looks import PairLooks
from experiments.models import Experiment
from experiments.registry.experiments.rules import Rules

StopRuleName = Literal["fixed", "until_clear", "until_precise"]


class VariantOut(BaseModel):
    name: str
    is_baseline: bool
    application: Named
    recipe: Named
    parameters: Parameters
    sut: str
    drivers: list[str]
    members: dict[str, str] = Field(
        {}, exclude_if=lambda members: not members, description="Of a system: role -> host; left out of a single server"
    )
    offered_rate_rps: float | None
    concurrency: int | None


class ExperimentRow(BaseModel):
    id: int
    url: str
    name: str
    question: str
    state: ExperimentState
    workload: Named
    repetitions: int
    order: ExperimentOrder
    primary_metric: str
    margin_ratio: float
    gate_metrics: list[str] = Field(description="Metrics that decide beside the primary one")
    stop_rule: StopRule
    target_ratio: float | None
    max_blocks: int
    max_hours: float | None
    aa_first: bool
    profilers: list[str] = Field(description="What each run has a profiled twin with")
    canaries_first: bool = Field(description="Whether its hosts are checked before its first run")
    state_reason: str = Field(description="Why it is paused or blocked, or why it stopped; may be empty")
    labels: dict[str, str]
    created_by: str | None
    created_at: datetime

    @classmethod
    def of(cls, experiment: Experiment, team: str) -> ExperimentRow:
        return cls(
            id=experiment.pk,
            url=experiment_url(team, experiment.pk),
            name=experiment.name,
            question=experiment.question,
            state=experiment.state,
            workload=Named(name=experiment.workload.name, version=experiment.workload.version),
            repetitions=experiment.repetitions,
            order=experiment.order,
            primary_metric=experiment.primary_metric,
            margin_ratio=experiment.margin_ratio,
            gate_metrics=experiment.gate_metrics,
            stop_rule=experiment.stop_rule,
            target_ratio=experiment.target_ratio,
            max_blocks=experiment.max_blocks,
            max_hours=experiment.max_hours,
            aa_first=experiment.aa_first,
            profilers=experiment.profilers,
            canaries_first=experiment.canaries_first,
            state_reason=experiment.state_reason,
            labels=experiment.labels,
            created_by=experiment.created_by.get_username() if experiment.created_by else None,
            created_at=experiment.created_at,
        )


class AaOut(BaseModel):
    """The baseline against itself; better or worse blocks the experiment."""

    outcome: str
    sentence: str
    estimate_pct: float | None
    ci95_pct: list[float] | None
    cov_pct: float | None
    n: int


class LookOut(BaseModel):
    """One look at a candidate; `alpha` is what this one may spend, and the interval is the one that it decides by."""

    candidate: str
    metric: str
    number: int
    blocks: int
    planned: bool
    alpha: float
    outcome: VerdictOutcome
    change_pct: float | None
    low_pct: float | None
    high_pct: float | None
    half_width_ratio: float | None = Field(description="Of the 95 % interval")

    @classmethod
    def all_of(cls, pair: PairLooks) -> list[LookOut]:
        found = []
        for look in pair.looks:
            low, high = look.verdict.deciding_pct or (None, None)
            found.append(
                cls(
                    candidate=pair.candidate,
                    metric=pair.metric.name,
                    number=look.number,
                    blocks=look.blocks,
                    planned=look.planned,
                    alpha=look.verdict.alpha,
                    outcome=look.verdict.outcome,
                    change_pct=look.verdict.estimate_pct,
                    low_pct=low,
                    high_pct=high,
                    half_width_ratio=look.half_width_ratio,
                )
            )
        return found


class HostCanaryOut(BaseModel):
    """One short check of a host; changes are percent of the mean of its earlier ones, of which there must be five."""

    host: str
    to: str = Field(description="The host at the other end of a check of the network; empty else")
    check: Literal["cpu", "disk", "network"]
    unit: str
    value: float | None
    problem: str = Field(description="Why there is no figure")
    earlier: int = Field(description="Checks that it is compared with, at most 30")
    change_pct: float | None
    low_pct: float | None = Field(description="Of the 95 % prediction interval")
    high_pct: float | None
    slower: bool = Field(description="The host itself got slower: all of the interval says so, by more than 3 %")
    faster: bool
    at: datetime

    @classmethod
    def of(cls, one: JudgedCanary) -> HostCanaryOut:
        change = one.change
        low, high = one.interval_ratio or (None, None)
        return cls(
            host=one.host,
            to=one.to,
            check=CANARIES[one.check].name,
            unit=one.unit,
            value=one.value,
            problem=one.problem,
            earlier=one.earlier,
            change_pct=None if one.change_ratio is None else one.change_ratio * 100,
            low_pct=None if low is None else low * 100,
            high_pct=None if high is None else high * 100,
            slower=bool(change and change.slower),
            faster=bool(change and change.faster),
            at=one.at,
        )


class ExperimentOut(ExperimentRow):
    hosts_before: str = Field(description="What the checks of its hosts say before any verdict; empty without them")
    canaries: list[HostCanaryOut]

    expected_end_at: datetime | None = Field(
        description="An estimate of the end of its last run; null when there is none"
    )
    spent_s: float = Field(description="Machine time of its runs so far")
    aa_result: AaOut | None
    looks: list[LookOut] = Field(description="Of a stop rule, the newest six of each candidate and metric")
    variants: list[VariantOut]
    runs: list[RunRow]


class ExperimentPage(BaseModel):
    items: list[ExperimentRow]
    next_cursor: str = Field(description="Empty at the end")


class VariantIn(Body):
    name: str = Field(min_length=1, max_length=120)
    application: Reference
    recipe: Reference
    sut: str = Field(min_length=1, max_length=120)
    drivers: DriverNames
    members: MemberNames = {}
    parameters: Parameters = {}
    is_baseline: Flag = False
    offered_rate_rps: float | None = Field(None, ge=1, le=1e9, description="In place of the workload's own rate")
    concurrency: Whole | None = Field(
        None, ge=1, le=1_000_000, description="In place of the workload's connections or users"
    )


class ExperimentIn(Body):
    name: str = Field(min_length=1, max_length=120)
    question: str = Field("", max_length=MAX_QUESTION)
    workload: Reference
    variants: list[VariantIn] = Field(min_length=1, max_length=50)
    repetitions: Whole = Field(5, ge=1, le=100)
    order: Literal["blocks", "interleaved", "sequential"] = "blocks"
    primary_metric: str = Field(
        "",
        max_length=60,
        description="Without it what stands for the workload: throughput_rps, of pgbench transactions/s",
    )
    margin_ratio: float = Field(0.03, gt=0, lt=1)
    gate_metrics: list[str] = Field([], max_length=10, description="Metrics that decide beside the primary one")
    stop_rule: StopRuleName = Field("fixed", description="until_clear and until_precise set the repetitions themselves")
    target_ratio: float | None = Field(None, gt=0, lt=1, description="until_precise: half-width of the 95 % interval")
    max_blocks: Whole = Field(20, ge=1, le=100, description="until_clear takes at most 20")
    max_hours: float | None = Field(None, gt=0, le=10_000, description="Cap of machine time for what a stop rule adds")
    aa_first: Flag = Field(False, description="Ten runs of the baseline against itself first")
    profilers: ProfilerNames | None = Field(
        None, description="Each block has a profiled twin of each run; null = those that the workload names"
    )
    canaries_first: Flag = Field(False, description="Check the hosts before its first run: CPUs, disks, network")
    labels: Labels = {}

    def rules(self) -> Rules:
        return Rules(
            stop_rule=self.stop_rule,
            target_ratio=self.target_ratio,
            max_blocks=self.max_blocks,
            max_hours=self.max_hours,
            aa_first=self.aa_first,
            canaries_first=self.canaries_first,
            gate_metrics=tuple(self.gate_metrics),
        )


class ExperimentChange(Body):
    """What is left out stays. All but name and question are chosen before the first run."""

    name: str | None = Field(None, min_length=1, max_length=120)
    question: str | None = Field(None, max_length=MAX_QUESTION)
    labels: Labels | None = None
    repetitions: Whole | None = Field(None, ge=1, le=100)
    order: Literal["blocks", "interleaved", "sequential"] | None = None
    primary_metric: str | None = Field(None, min_length=1, max_length=60)
    margin_ratio: float | None = Field(None, gt=0, lt=1)
    gate_metrics: list[str] | None = Field(None, max_length=10)


class LaunchIn(Body):
    repetitions: Whole | None = Field(None, ge=1, le=100, description="More blocks for an experiment that has run")
    priority: Priority = "normal"
    retries: Retries = launch.EXPERIMENT_RETRIES


class CopyIn(Body):
    """Names the experiment in the body, so that a repeated request stays the same one when a copy has the same name."""

    experiment: Whole | str = Field(description="Its number, or its name: then the newest one of this name")
    repetitions: Whole | None = Field(None, ge=1, le=100, description="Else as in the experiment")
    labels: Labels = Field({}, description="Added to the labels of the experiment")
    priority: Priority = "normal"
    retries: Retries = launch.EXPERIMENT_RETRIES


class ArmCostOut(BaseModel):
    """One run of a variant; `basis` says what its preparation and end rest on."""

    name: str
    basis: Literal["recipe", "host", "usual"]
    runs: int
    prepare_s: float
    warm_up_s: float
    measure_s: float
    cool_down_s: float


class ExtentOut(BaseModel):
    blocks: int
    runs: int
    duration_s: float


class NoiseOut(BaseModel):
    cov_ratio: float
    runs: int


class FindsOut(BaseModel):
    """So many blocks find a change of this size in four of five cases."""

    blocks: int
    change_ratio: float


class ForecastOut(BaseModel):
    """What a launch costs and what it can find; nothing is stored or started."""

    first: ExtentOut
    most: ExtentOut
    arms: list[ArmCostOut]
    noise: NoiseOut | None = Field(description="Of earlier runs of the workload on that SUT; null without any")
    needed_blocks: int | None = Field(description="To settle a difference of the margin at that noise")
    finds: list[FindsOut]
    sentences: list[str]

    @classmethod
    def of(cls, found: Forecast) -> ForecastOut:
        return cls(
            first=ExtentOut(**vars(found.first)),
            most=ExtentOut(**vars(found.most)),
            arms=[ArmCostOut(**vars(arm)) for arm in found.arms],
            noise=NoiseOut(**vars(found.noise)) if found.noise else None,
            needed_blocks=found.needed_blocks,
            finds=[FindsOut(**vars(one)) for one in found.finds],
            sentences=list(found.sentences),
        )
