"""Kernel, OS, memory and the like as factors of an experiment, or of runs side by side."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.contrast import Contrast
from experiments.analysis.machine_factors import Cell, Effect, EffectCell, Row, Split
from experiments.api.finding import find_experiment
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.shapes import MAX_ID
from experiments.judging.comparing.comparison import comparable_runs
from experiments.judging.comparing.history import experiment_runs
from experiments.judging.comparing.machines import machines_of_experiment, machines_of_runs
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import metric_named

router = Router(auth=READ, tags=["compare"])

MAX_RUNS = 200
"""Their numbers, of nine digits each, fit into the 2,000 characters of `runs`."""


class ContrastOut(BaseModel):
    """A ratio of geometric means; 1 is no difference."""

    ratio: float
    ci95: tuple[float, float] | None = Field(description="From three repetitions on")
    paired: bool = Field(description="Compared block by block")

    @classmethod
    def of(cls, found: Contrast) -> ContrastOut:
        return cls(ratio=found.ratio, ci95=found.ci95, paired=found.paired)


class LevelOut(BaseModel):
    values: list[str] = Field(description="Of each factor of the split")
    hosts: list[str]
    runs: int


class CellOut(BaseModel):
    runs: list[int]
    mean: float | None
    mean_ci95: tuple[float, float] | None
    change: ContrastOut | None = Field(description="Against the first level that has runs")

    @classmethod
    def of(cls, cell: Cell) -> CellOut:
        return cls(
            runs=[number for number, _ in cell.repetitions],
            mean=cell.mean.value if cell.mean else None,
            mean_ci95=cell.mean.ci95 if cell.mean else None,
            change=ContrastOut.of(cell.change) if cell.change else None,
        )


class RowOut(BaseModel):
    setup: str
    alike: str = Field(description="The other factors, in which the machines of this row are alike")
    levels: list[CellOut]

    @classmethod
    def of(cls, row: Row) -> RowOut:
        return cls(setup=row.setup, alike=row.alike, levels=[CellOut.of(cell) for cell in row.cells])


class EffectCellOut(BaseModel):
    brings: ContrastOut | None = Field(description="The set-up against the baseline at this level")
    against_first: ContrastOut | None = Field(description="That, as a ratio to the same at the first level")

    @classmethod
    def of(cls, cell: EffectCell) -> EffectCellOut:
        return cls(
            brings=ContrastOut.of(cell.brings) if cell.brings else None,
            against_first=ContrastOut.of(cell.against_first) if cell.against_first else None,
        )


class EffectOut(BaseModel):
    setup: str
    baseline: str
    alike: str
    levels: list[EffectCellOut]

    @classmethod
    def of(cls, effect: Effect) -> EffectOut:
        cells = [EffectCellOut.of(cell) for cell in effect.cells]
        return cls(setup=effect.setup, baseline=effect.baseline, alike=effect.alike, levels=cells)


class SplitOut(BaseModel):
    factors: list[str] = Field(description="They divide the runs in the same way, so no figure can tell them apart")
    levels: list[LevelOut]
    setups: list[RowOut]
    effects: list[EffectOut]
    sentences: list[str]

    @classmethod
    def of(cls, split: Split) -> SplitOut:
        return cls(
            factors=list(split.factors),
            levels=[LevelOut(values=list(one.texts), hosts=list(one.hosts), runs=one.runs) for one in split.levels],
            setups=[RowOut.of(row) for row in split.rows],
            effects=[EffectOut.of(effect) for effect in split.effects],
            sentences=list(split.sentences),
        )


class MachineFactorsOut(BaseModel):
    metric: str
    splits: list[SplitOut] = Field(description="Empty when the machines differ in nothing that all runs tell")
    untold: list[str] = Field(description="Factors that some of the runs do not tell")


@router.get("", response=MachineFactorsOut)
def machine_factors(
    request: HttpRequest,
    experiment: int | None = Query(None, ge=1, le=MAX_ID, description="All of its runs"),
    runs: str = Query("", max_length=2000, description="Or run numbers: 12,13,14"),
    metric: str = Query("throughput_rps", max_length=60),
) -> MachineFactorsOut:
    """What kernel, OS, memory, CPU and Java of the servers come to, like compared with like."""
    member = member_of(request)
    spec = metric_named(member.team_id, metric)
    if (experiment is None) == (not runs):
        raise RequestError("Give either an experiment or run numbers.", field="runs")
    if experiment is not None:
        found = find_experiment(member, experiment)
        variants = list(found.variants.select_related("application", "recipe"))
        machines = machines_of_experiment(found, variants, experiment_runs(found), spec.name)
    else:
        machines = machines_of_runs(comparable_runs(member.team, _numbers(runs)), spec.name)
    return MachineFactorsOut(
        metric=spec.name, splits=[SplitOut.of(split) for split in machines.splits], untold=list(machines.untold)
    )


def _numbers(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or len(words) > MAX_RUNS or not all(w.isascii() and w.isdigit() and len(w) < 10 for w in words):
        raise RequestError(f"Give 1 to {MAX_RUNS} run numbers.", field="runs")
    return [int(word) for word in words]
