"""Runs side by side."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.choices import MetricDirection
from experiments.api.documents import DifferenceOut
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.shapes import RunRow
from experiments.judging.comparing.comparison import MAX_COMPARED, comparable_runs, compare
from experiments.registry.documents.configuration import ConfigurationDiff, Difference
from experiments.registry.errors import RequestError

router = Router(auth=READ, tags=["compare"])

_MAX_NUMBER = 2**31 - 1


class ConfounderOut(BaseModel):
    """What differs apart from the recipe under test."""

    what: str
    values: list[str]


class MetricRowOut(BaseModel):
    metric: str
    label: str
    unit: str
    direction: MetricDirection
    values: list[float | None]
    changes_pct: list[float | None] = Field(description="Against the first run")


class ConfigurationOut(BaseModel):
    """asked = the recipes differ, drift = nobody asked, noise = known to vary."""

    asked: list[DifferenceOut]
    drift: list[DifferenceOut]
    noise: list[DifferenceOut]

    @classmethod
    def of(cls, found: ConfigurationDiff) -> ConfigurationOut:
        return cls(asked=_rows(found.asked), drift=_rows(found.drift), noise=_rows(found.noise))


class ComparisonOut(BaseModel):
    runs: list[RunRow]
    comparable: bool
    confounders: list[ConfounderOut]
    metrics: list[MetricRowOut]
    configuration: ConfigurationOut
    hardware: ConfigurationOut


@router.get("", response=ComparisonOut)
def compare_runs(
    request: HttpRequest,
    baseline: int = Query(..., ge=1, le=_MAX_NUMBER),
    candidate: list[int] = Query(..., description="May be given several times"),
) -> ComparisonOut:
    """Metrics, confounders, configuration and hardware of the candidates against the baseline."""
    if len(candidate) >= MAX_COMPARED or any(not 1 <= number <= _MAX_NUMBER for number in candidate):
        raise RequestError(f"Give 1 to {MAX_COMPARED - 1} run numbers.", field="candidate")
    team = member_of(request).team
    found = compare(comparable_runs(team, [baseline, *candidate]))
    return ComparisonOut(
        runs=[RunRow.of(run, team.slug) for run in found.runs],
        comparable=found.comparable,
        confounders=[ConfounderOut(what=one.what, values=list(one.values)) for one in found.confounders],
        metrics=[
            MetricRowOut(
                metric=row.metric.name,
                label=row.metric.label,
                unit=row.metric.unit,
                direction=row.metric.direction,
                values=list(row.values),
                changes_pct=list(row.changes_pct),
            )
            for row in found.rows
        ],
        configuration=ConfigurationOut.of(found.configuration),
        hardware=ConfigurationOut.of(found.hardware),
    )


def _rows(differences: tuple[Difference, ...]) -> list[DifferenceOut]:
    return [DifferenceOut(path=one.path, values=list(one.values)) for one in differences]
