"""Tables of timers of a run."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.results.timer_tables import MAX_CHARS
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body
from experiments.asking.intake import timers
from experiments.judging.comparing.comparison import MAX_COMPARED, comparable_runs
from experiments.judging.comparing.timers import comparison_json, rows_of, timers_of
from experiments.models import TimerTable
from experiments.registry.errors import RequestError

router = Router(auth=READ, tags=["timers"])


class TimerOut(BaseModel):
    action: str
    total_ms: float
    count: int
    ms_per_count: float | None = Field(description="As printed")
    computed_ms_per_count: float | None = Field(description="Total / count")
    average_differs: bool
    percent: float | None
    cpus: int | None


class TimerTableOut(BaseModel):
    name: str
    rows: list[TimerOut]

    @classmethod
    def of(cls, table: TimerTable) -> TimerTableOut:
        rows = [
            TimerOut(**stored, computed_ms_per_count=row.computed_ms_per_count)
            for stored, row in zip(table.rows, rows_of(table), strict=True)
        ]
        return cls(name=table.name, rows=rows)


class TimerTableIn(Body):
    name: str = Field(min_length=1, max_length=timers.MAX_NAME)
    text: str = Field(
        max_length=MAX_CHARS, description="Action, Total (ms), Count, T/C, Percent; text, CSV or Markdown"
    )

    model_config = {"str_strip_whitespace": False}


class TimerRowOut(BaseModel):
    action: str
    ms_per_count: list[float | None]
    counts: list[int | None]
    growth_ratio: float | None = Field(description="The last column over the first")
    added_ms: float | None


class TimerComparisonOut(BaseModel):
    name: str
    columns: list[str]
    sentence: str
    differing: list[str] = Field(description="Printed averages that are not total / count")
    rows: list[TimerRowOut] = Field(description="The biggest growth first")


@router.get("/runs/{int:number}/timers", response=list[TimerTableOut])
@paged
def list_timers(request: HttpRequest, number: int) -> list[TimerTableOut]:
    """The tables of a run."""
    run = find_run(member_of(request), number)
    return [TimerTableOut.of(table) for table in run.timer_tables.all()]


@router.post("/runs/{int:number}/timers", response={201: TimerTableOut}, auth=LAUNCH)
@idempotent
def import_timers(request: HttpRequest, number: int, payload: TimerTableIn) -> Status[TimerTableOut]:
    """Add a table that the application printed while this run measured it."""
    member = member_of(request)
    table = timers.import_timers(member, find_run(member, number), name=payload.name, text=payload.text)
    return Status(201, TimerTableOut.of(table))


@router.get("/timers", response=list[TimerComparisonOut])
@paged
def compare_timers(
    request: HttpRequest, runs: str = Query(..., max_length=200, description="Run numbers: 12,13,14")
) -> list[TimerComparisonOut]:
    """The tables of these runs over their CPU counts, the biggest growth per call first."""
    words = [word.strip() for word in runs.split(",") if word.strip()]
    if not words or len(words) > MAX_COMPARED or not all(w.isascii() and w.isdigit() and len(w) < 10 for w in words):
        raise RequestError(f"Give 1 to {MAX_COMPARED} run numbers.", field="runs")
    found = comparable_runs(member_of(request).team, [int(word) for word in words])
    return [TimerComparisonOut(**comparison_json(one)) for one in timers_of(found)]
