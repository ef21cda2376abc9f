"""Results that were measured elsewhere: figures, parameters and series of one run, or of many at once."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.auth import SEND, member_of
from experiments.api.idempotency import idempotent
from experiments.api.shapes import Body, run_url
from experiments.models import Run
from experiments.runs.reported import SentResult
from experiments.runs.reporting import MAX_RESULTS, store_results

router = Router(auth=SEND, tags=["results"])

_EXAMPLE = {
    "tool": "gatling 3.14",
    "history": "checkout, 200 users",
    "labels": {"commit": "abc123", "branch": "main"},
    "parameters": {"jvm.heap": "4g", "http2": True, "pool.size": 64},
    "metrics": {"throughput_rps": 5120.5, "latency_p99_ms": 18.2, "requests": 307230, "errors_total": 0},
    "own_metrics": {"cart_age_ms": {"value": 3.4, "unit": "ms", "direction": "lower"}},
    "series": [{"channel": "heap.used_bytes", "unit": "bytes", "at_s": [0, 1, 2], "values": [1e9, 1.1e9, 9e8]}],
}


class Batch(Body):
    """Several results; when one is wrong, none is stored."""

    results: Annotated[list[SentResult], Field(min_length=1, max_length=MAX_RESULTS)]


class ReportedRun(BaseModel):
    """The run that a result became."""

    number: int
    url: str
    outcome: str
    validity: str
    reasons: list[str] = Field(description="What speaks against the run, the worst first")

    @classmethod
    def of(cls, run: Run, team: str) -> ReportedRun:
        reasons = [one["sentence"] for level in ("invalid", "warn") for one in run.findings if one["level"] == level]
        return cls(
            number=run.number,
            url=run_url(team, run.number),
            outcome=run.outcome,
            validity=run.validity,
            reasons=reasons,
        )


class ReportedRuns(BaseModel):
    """In the order in which the results came."""

    runs: list[ReportedRun]


def _with_example(example: object) -> dict[str, object]:
    return {"requestBody": {"content": {"application/json": {"example": example}}}}


@router.post("", response={201: ReportedRun}, openapi_extra=_with_example(_EXAMPLE))
@idempotent
def create_result(request: HttpRequest, payload: SentResult) -> Status[ReportedRun]:
    """Store a run that was measured elsewhere. It is judged, but is never more than `suspect`: nobody saw the hosts."""
    member = member_of(request)
    (run,) = store_results(member, [payload])
    return Status(201, ReportedRun.of(run, member.team.slug))


@router.post("/batch", response={201: ReportedRuns}, openapi_extra=_with_example({"results": [_EXAMPLE]}))
@idempotent
def create_results(request: HttpRequest, payload: Batch) -> Status[ReportedRuns]:
    """Store up to 100 runs in one transaction: all of them, or none when one is wrong."""
    member = member_of(request)
    runs = store_results(member, payload.results)
    return Status(201, ReportedRuns(runs=[ReportedRun.of(run, member.team.slug) for run in runs]))
