"""The registry of figures."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from experiments.api.auth import READ
from experiments.metrics import METRICS

router = Router(auth=READ, tags=["metrics"])


class MetricOut(BaseModel):
    name: str
    label: str
    unit: str
    direction: str
    noise_floor_ratio: float


@router.get("", response=list[MetricOut])
def list_metrics(request: HttpRequest) -> list[MetricOut]:
    """Every figure that BenchHub knows, with its unit and whether higher or lower is better."""
    return [MetricOut(**vars(metric)) for metric in METRICS.values()]
