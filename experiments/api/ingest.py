"""Results that were measured elsewhere: figures, parameters and series of one run, or of many at once."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import RunOutcome, RunValidity
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import SEND, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.shapes import Body, run_url
from experiments.asking.intake.ingest import MAX_RESULTS, store_results
from experiments.asking.intake.sent_results import MAX_SERIES, SentResult, SentSeries
from experiments.asking.intake.series import add_series
from experiments.models import Run

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
    outcome: RunOutcome
    validity: RunValidity
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


_SERIES = {"series": [{"channel": "gc.pause_ms", "unit": "ms", "at_s": [0, 30, 60], "values": [4.1, 3.8, 4.4]}]}


class SeriesIn(Body):
    """Series of a run that is stored already."""

    series: Annotated[list[SentSeries], Field(min_length=1, max_length=MAX_SERIES)]


class SeriesStored(BaseModel):
    """Channels with the side that they are of in front: `sut heap.used_bytes`."""

    added: list[str]
    replaced: list[str] = Field(description="Those that were there already")


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


@router.post("/{int:number}/series", response={201: SeriesStored}, openapi_extra=_with_example(_SERIES))
@idempotent
def add_result_series(request: HttpRequest, number: int, payload: SeriesIn) -> Status[SeriesStored]:
    """Add series to a run that others measured. A channel that it has already is replaced, so sending twice is safe."""
    member = member_of(request)
    stored = add_series(member, find_run(member, number), payload.series)
    return Status(201, SeriesStored(added=list(stored.added), replaced=list(stored.replaced)))
