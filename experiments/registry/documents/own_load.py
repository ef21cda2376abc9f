"""The load that a run or a variant has of its own, not the workload's: an offered rate, connections or users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.base.errors import PlanError
from agents.drivers.concurrency import at_concurrency
from agents.drivers.rates import at_rate, offered_rate_rps
from agents.spec import Workload as SpecWorkload
from agents.spec import WorkloadDocument
from experiments.models import Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import RequestError

OWN_LOAD = ("offered_rate_rps", "concurrency")
"""What a variant may have in place of its workload's."""


def workload_with(
    workload: Workload, hosts: int, *, rate_rps: float | None = None, concurrency: int | None = None
) -> SpecWorkload:
    """The workload as so many driver hosts run it with that load. RequestError names what the tool cannot do."""
    document: WorkloadDocument = content_of(workload)
    driver = document.driver
    try:
        if concurrency is not None:
            driver = at_concurrency(driver, concurrency)
    except PlanError as error:
        raise RequestError(error.message, field="concurrency") from error
    try:
        if rate_rps is not None:
            driver = at_rate(driver, rate_rps, hosts)
    except PlanError as error:
        raise RequestError(error.message, field="workload") from error
    return SpecWorkload(
        **dict(document.model_copy(update={"driver": driver})),
        name=workload.name,
        version=workload.version,
        own_rate_rps=None if rate_rps is None else offered_rate_rps(driver),
        own_concurrency=concurrency,
    )


def own_load(spec: Mapping[str, Any]) -> tuple[float | None, int | None]:
    """The offered rate in requests/s and the connections or users that a run's specification has of its own."""
    workload = spec["workload"]
    return workload.get("own_rate_rps"), workload.get("own_concurrency")
