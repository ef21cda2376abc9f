"""What requests cost in each function, of two variants of an experiment or of two sets of runs."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.analysis.function_costs import CostChange
from experiments.api.finding import find_experiment
from experiments.api.plumbing.auth import READ, member_of
from experiments.judging.comparing.functions import (
    ComparedFunctions,
    Side,
    compared_functions,
    functions_of_variants,
    runs_listed,
)
from experiments.registry.errors import NotFound

router = Router(auth=READ, tags=["compare"])


class FunctionCostOut(BaseModel):
    """CPU microseconds per request in a function."""

    name: str
    baseline_us: float
    candidate_us: float
    change_us: float
    ci95_us: tuple[float, float] | None = Field(description="Of the change; null below three runs of each")
    adjusted_p: float | None = Field(description="Corrected for all functions; null below five runs of each")
    verdict: str = Field(description="more, less, not_separated or too_few")

    @classmethod
    def of(cls, row: CostChange) -> FunctionCostOut:
        return cls(
            name=row.name,
            baseline_us=row.baseline_us,
            candidate_us=row.candidate_us,
            change_us=row.change_us,
            ci95_us=row.ci95_us,
            adjusted_p=row.adjusted_p,
            verdict=row.verdict,
        )


class ProfiledSideOut(BaseModel):
    name: str
    runs: list[int] = Field(description="Those that have a profile of the kind that is compared")
    samples: int | None
    lost_samples: int | None
    unknown_ratio: float = Field(description="Of the profile that knows least")

    @classmethod
    def of(cls, side: Side) -> ProfiledSideOut:
        return cls(
            name=side.name,
            runs=[run.number for run in side.runs],
            samples=side.samples,
            lost_samples=side.lost_samples,
            unknown_ratio=side.unknown_ratio,
        )


class FunctionsOut(BaseModel):
    """`own` with `rest` adds up to `whole`, the change of CPU per request; `total` is with all that was called."""

    baseline: ProfiledSideOut
    candidate: ProfiledSideOut
    event: str
    engine: str
    why_not: str = Field(description="Why there is no difference; empty when there is one")
    notes: list[str] = Field(description="What to mind: distortion by the profiler, a closed load, lost samples")
    paired: bool | None = Field(description="Block by block")
    n: int = Field(description="Runs of each side")
    own: list[FunctionCostOut] = Field(description="Those that explain first")
    rest: FunctionCostOut | None
    whole: FunctionCostOut | None
    total: list[FunctionCostOut]

    @classmethod
    def of(cls, found: ComparedFunctions) -> FunctionsOut:
        changes = found.changes
        return cls(
            baseline=ProfiledSideOut.of(found.baseline),
            candidate=ProfiledSideOut.of(found.candidate),
            event=found.event,
            engine=found.engine,
            why_not=found.why_not,
            notes=list(found.notes),
            paired=changes.paired if changes else None,
            n=changes.n if changes else 0,
            own=[FunctionCostOut.of(row) for row in changes.own] if changes else [],
            rest=FunctionCostOut.of(changes.rest) if changes else None,
            whole=FunctionCostOut.of(changes.whole) if changes else None,
            total=[FunctionCostOut.of(row) for row in changes.total] if changes else [],
        )


@router.get("/experiments/{int:experiment_id}/functions", response=list[FunctionsOut])
def experiment_functions(
    request: HttpRequest,
    experiment_id: int,
    role: str = Query("", max_length=12, description="A member of the system; the loaded server when left out"),
) -> list[FunctionsOut]:
    """Each candidate that has profiled runs against the baseline, function by function."""
    experiment = find_experiment(member_of(request), experiment_id)
    found = functions_of_variants(experiment, role=role)
    return [FunctionsOut.of(one) for one in found]


@router.get("/functions", response=FunctionsOut)
def compare_functions(
    request: HttpRequest,
    before: str = Query(..., max_length=400, description="Run numbers of the one side: 12,13,14"),
    after: str = Query(..., max_length=400, description="Run numbers of the other side: 15,16,17"),
    role: str = Query("", max_length=12, description="A member of the system; the loaded server when left out"),
) -> FunctionsOut:
    """Two sets of runs, function by function. 404 when none of them has a profile."""
    team = member_of(request).team
    sides = [runs_listed(team, text, field=name) for name, text in (("before", before), ("after", after))]
    found = compared_functions(("before", "after"), sides, role=role)
    if found is None:
        raise NotFound("None of these runs has a profile.")
    return FunctionsOut.of(found)
