"""Many runs at once: tag, untag, archive, take out of the archive, run again."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import LAUNCH, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.shapes import Body, Tags, Whole
from experiments.asking.launching import bulk
from experiments.asking.launching.bulk import MAX_RUNS

router = Router(auth=LAUNCH, tags=["runs"])

_Numbers = Annotated[list[Whole], Field(min_length=1, max_length=MAX_RUNS, description="Numbers of runs of the team")]


class RunsIn(Body):
    """Runs by their numbers: all of them are changed, or none when one cannot be."""

    runs: _Numbers


class TagsIn(RunsIn):
    tags: Annotated[Tags, Field(min_length=1)]


class ChangedOut(BaseModel):
    changed: list[int] = Field(description="The runs that were not so before")


class QueuedOut(BaseModel):
    queued: list[int] = Field(description="The new runs, in the order of the numbers of those that they repeat")


@router.post("/tag", response=ChangedOut)
def tag_runs(request: HttpRequest, payload: TagsIn) -> ChangedOut:
    """Add tags to runs."""
    return ChangedOut(changed=[run.number for run in bulk.tag_runs(member_of(request), payload.runs, payload.tags)])


@router.post("/untag", response=ChangedOut)
def untag_runs(request: HttpRequest, payload: TagsIn) -> ChangedOut:
    """Take tags off runs."""
    return ChangedOut(changed=[run.number for run in bulk.untag_runs(member_of(request), payload.runs, payload.tags)])


@router.post("/archive", response=ChangedOut, auth=WRITE)
def archive_runs(request: HttpRequest, payload: RunsIn) -> ChangedOut:
    """Leave finished runs out of lists and histories. Experiments that they belong to keep them."""
    return ChangedOut(changed=[run.number for run in bulk.archive_runs(member_of(request), payload.runs)])


@router.post("/unarchive", response=ChangedOut, auth=WRITE)
def unarchive_runs(request: HttpRequest, payload: RunsIn) -> ChangedOut:
    """Put archived runs back into lists and histories."""
    return ChangedOut(changed=[run.number for run in bulk.unarchive_runs(member_of(request), payload.runs)])


@router.post("/rerun", response={202: QueuedOut})
@idempotent
def rerun_runs(request: HttpRequest, payload: RunsIn) -> Status[QueuedOut]:
    """Queue runs again with the same versions, parameters and hosts."""
    again = bulk.rerun_runs(member_of(request), payload.runs)
    return Status(202, QueuedOut(queued=[run.number for run in again]))
