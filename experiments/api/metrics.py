"""The registry of figures: those that BenchHub knows, and the team's own."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.choices import MetricDirection
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag
from experiments.judging.alerts.following import follow_metric
from experiments.judging.alerts.trends import WATCHED
from experiments.registry.metrics.own_metrics import followed_metrics, metrics_of
from experiments.registry.metrics.vocabulary import METRICS

router = Router(auth=READ, tags=["metrics"])


class MetricOut(BaseModel):
    name: str
    label: str
    unit: str
    direction: MetricDirection
    noise_floor_ratio: float
    high: float | None = Field(description="The largest value that can be; 1 of a CPU ratio")
    own: bool = Field(description="The team's own, as its newest run or workload declares it")
    followed: bool = Field(description="Whether its histories are searched for change points")


class MetricChange(Body):
    followed: Flag = Field(description="Judge it in every experiment that has it and watch its histories, or not")


@router.get("", response=list[MetricOut])
@paged
def list_metrics(request: HttpRequest) -> list[MetricOut]:
    """Every figure with its unit and whether higher or lower is better: the known ones, then the team's own."""
    return _metrics(member_of(request).team_id)


@router.patch("/{name}", response=MetricOut, auth=WRITE)
def change_metric(request: HttpRequest, name: str, payload: MetricChange) -> MetricOut:
    """Follow one of the team's own figures, or stop it; its histories are searched for change points at once."""
    member = member_of(request)
    changed = follow_metric(member, name, followed=payload.followed)
    return next(one for one in _metrics(member.team_id) if one.name == changed.name)


def _metrics(team_id: int) -> list[MetricOut]:
    followed = {*WATCHED, *followed_metrics(team_id)}
    return [
        MetricOut(**vars(metric), own=name not in METRICS, followed=name in followed)
        for name, metric in metrics_of(team_id).items()
    ]
