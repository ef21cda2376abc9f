"""The queue: what runs, what waits and why, and when it can be expected to start."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, member_of
from experiments.api.plumbing.paging import CURSOR, MAX_ROWS, tell_pages_of
from experiments.api.shapes import RunRow
from experiments.running.queue.timetable import MAX_SHOWN, Line, queue_of

router = Router(auth=READ, tags=["queue"])


class QueuedRun(BaseModel):
    """A run that is active or waits, with what is expected of it."""

    run: RunRow
    place: int = Field(description="Among those that wait, from 1; of an active run 0")
    reason: str = Field(description="Why it waits; empty for an active run")
    runs_before: int = Field(description="Runs that use its hosts, or will before it does")
    expected_start_at: datetime | None = Field(description="An estimate; null when only a person can end the wait")
    expected_end_at: datetime | None

    @classmethod
    def of(cls, line: Line, team: str) -> QueuedRun:
        expected = line.expected
        return cls(
            run=RunRow.of(line.run, team),
            place=expected.place,
            reason=expected.reason,
            runs_before=expected.runs_before,
            expected_start_at=expected.starts_at,
            expected_end_at=expected.ends_at,
        )


class QueueOut(BaseModel):
    running: list[QueuedRun]
    waiting: list[QueuedRun] = Field(description="In the order in which they will start")
    more: int = Field(description="How many wait behind those")
    next_cursor: str = Field(description="Where the list of those that wait goes on; empty at its end")


@router.get("", response=QueueOut)
def get_queue(
    request: HttpRequest,
    cursor: int = CURSOR,
    limit: int = Query(MAX_SHOWN, ge=1, le=MAX_ROWS, description="Of those that wait"),
) -> QueueOut:
    """What runs now, and what waits in the order in which it will start; times are estimates."""
    team = member_of(request).team
    found = queue_of(team, skip=cursor, most=limit)
    page = QueueOut(
        running=[QueuedRun.of(line, team.slug) for line in found.running],
        waiting=[QueuedRun.of(line, team.slug) for line in found.waiting],
        more=found.more,
        next_cursor=str(cursor + len(found.waiting)) if found.more else "",
    )
    tell_pages_of(request, page)
    return page
