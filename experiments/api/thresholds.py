"""The team's limits for the validity checks."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from experiments.analysis.thresholds import Thresholds, limits
from experiments.api.plumbing.auth import ADMIN, READ, member_of
from experiments.api.shapes import Body
from experiments.judging.evidence.thresholds import change_thresholds, thresholds_of

router = Router(auth=READ, tags=["thresholds"])


class ThresholdOut(BaseModel):
    """One limit; ratios are given as 0.02 for 2 %. `driver_cpu_invalid` is true or false."""

    name: str
    value: bool | float
    default: bool | float
    unit: str
    low: float
    high: float
    reason: str = Field(description="Why the default is what it is")
    source: str
    checks: list[str] = Field(description="The validity checks that use it")


class ThresholdsChange(Body):
    values: dict[str, bool | float | None] = Field(
        description="New values by name, null = back to the default; what is not named stays",
        examples=[{"error_budget_ratio": 0.001, "steal_warn_ratio": None}],
    )


@router.get("", response=list[ThresholdOut])
def list_thresholds(request: HttpRequest) -> list[ThresholdOut]:
    """Every limit of the validity checks: the team's value, the default and the reason for it."""
    return list(_shown(thresholds_of(member_of(request).team)))


@router.patch("", response=list[ThresholdOut], auth=ADMIN)
def set_thresholds(request: HttpRequest, payload: ThresholdsChange) -> list[ThresholdOut]:
    """Set limits for runs that end from now on. For admins; the audit trail names what changed."""
    return list(_shown(change_thresholds(member_of(request), payload.values)))


def _shown(values: Thresholds) -> Iterator[ThresholdOut]:
    for limit in limits():
        yield ThresholdOut(
            name=limit.name,
            value=getattr(values, limit.name),
            default=limit.default,
            unit=limit.unit,
            low=limit.low,
            high=limit.high,
            reason=limit.reason,
            source=limit.source,
            checks=list(limit.checks),
        )
