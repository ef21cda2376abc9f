"""Deleting and getting back: runs and experiments in the trash."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import CURSOR, MAX_ROWS, tell_pages_of
from experiments.api.shapes import MAX_ID, Body, RunNumber, Whole
from experiments.keeping.retention import trash
from experiments.models import Member
from experiments.registry.errors import RequestError

router = Router(auth=READ, tags=["trash"])


class TrashRow(BaseModel):
    """A run by its number, or an experiment by its id with the runs that went with it."""

    kind: Literal["run", "experiment"]
    name: str
    number: int = Field(description="The run's number or the experiment's id")
    runs: int
    trashed_at: datetime
    removed_at: datetime = Field(description="From then on it is removed for good")


class TrashIn(Body):
    """Either run numbers, or the id of one experiment, which takes its runs along."""

    runs: list[RunNumber] = Field([], max_length=trash.MOST_AT_ONCE)
    experiment: Whole | None = Field(None, ge=1, le=MAX_ID)


class TrashOut(BaseModel):
    """What is in the trash now, the latest first."""

    items: list[TrashRow]
    next_cursor: str = Field(description="Where GET /trash goes on; empty at its end")


@router.get("", response=TrashOut)
def list_trash(
    request: HttpRequest, cursor: int = CURSOR, limit: int = Query(trash.MOST_AT_ONCE, ge=1, le=MAX_ROWS)
) -> TrashOut:
    """What is in the trash, the latest first."""
    found = trash.trash_of(member_of(request).team, most=cursor + limit + 1)
    page = _page(found, cursor, limit)
    tell_pages_of(request, page)
    return page


@router.post("", response=TrashOut, auth=WRITE)
@idempotent
def move_to_trash(request: HttpRequest, payload: TrashIn) -> Status[TrashOut]:
    """Take runs or an experiment out of every list, history and verdict; restorable for 30 days. Editors may."""
    member = member_of(request)
    if _one_of(payload) == "runs":
        trash.trash_runs(member, payload.runs)
    else:
        trash.trash_experiment(member, payload.experiment or 0)
    return Status(200, _now(member))


@router.post("/restore", response=TrashOut, auth=WRITE)
@idempotent
def restore_from_trash(request: HttpRequest, payload: TrashIn) -> Status[TrashOut]:
    """Put runs or an experiment back where they were. Editors may."""
    member = member_of(request)
    if _one_of(payload) == "runs":
        trash.restore_runs(member, payload.runs)
    else:
        trash.restore_experiment(member, payload.experiment or 0)
    return Status(200, _now(member))


def _one_of(payload: TrashIn) -> str:
    if bool(payload.runs) is (payload.experiment is not None):
        raise RequestError("Name either runs or one experiment.", field="runs")
    return "runs" if payload.runs else "experiment"


def _now(member: Member) -> TrashOut:
    """The first page, after a change."""
    return _page(trash.trash_of(member.team, most=trash.MOST_AT_ONCE + 1), 0, trash.MOST_AT_ONCE)


def _page(found: Sequence[trash.Trashed], cursor: int, limit: int) -> TrashOut:
    return TrashOut(
        next_cursor=str(cursor + limit) if cursor + limit < len(found) else "",
        items=[
            TrashRow(
                kind="run" if row.kind == "run" else "experiment",
                name=row.name,
                number=row.key,
                runs=row.runs,
                trashed_at=row.trashed_at,
                removed_at=row.removed_at,
            )
            for row in found[cursor : cursor + limit]
        ],
    )
