"""Pinned baselines: runs with a name that others are held against."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.finding import find_run
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag, Whole
from experiments.models import Member, PinnedBaseline
from experiments.registry.errors import NotFound
from experiments.registry.runs.baselines import baselines_of, pin, unpin

router = Router(auth=READ, tags=["baselines"])


class BaselineIn(Body):
    run: Whole = Field(description="Number of a run that succeeded and is valid or suspect", examples=[142])
    for_series: Flag = Field(False, description="Every run of the same series is held against it")


class BaselineOut(BaseModel):
    name: str
    run: int
    for_series: bool
    pinned_by: str | None
    pinned_at: datetime

    @classmethod
    def of(cls, baseline: PinnedBaseline) -> BaselineOut:
        return cls(
            name=baseline.name,
            run=baseline.run.number,
            for_series=bool(baseline.fingerprint),
            pinned_by=baseline.pinned_by.get_username() if baseline.pinned_by else None,
            pinned_at=baseline.pinned_at,
        )


@router.get("", response=list[BaselineOut])
@paged
def list_baselines(request: HttpRequest) -> list[BaselineOut]:
    """All of them, by name."""
    return [BaselineOut.of(baseline) for baseline in baselines_of(member_of(request).team)]


@router.get("/{path:name}", response=BaselineOut)
def get_baseline(request: HttpRequest, name: str) -> BaselineOut:
    """One of them."""
    return BaselineOut.of(_named(member_of(request), name))


@router.put("/{path:name}", response=BaselineOut, auth=WRITE)
def save_baseline(request: HttpRequest, name: str, payload: BaselineIn) -> BaselineOut:
    """Give a run this name; one that has it loses it."""
    member = member_of(request)
    return BaselineOut.of(pin(member, find_run(member, payload.run), name, for_series=payload.for_series))


@router.delete("/{path:name}", response=BaselineOut, auth=WRITE)
def delete_baseline(request: HttpRequest, name: str) -> BaselineOut:
    """Take the name off its run; the run stays."""
    member = member_of(request)
    baseline = _named(member, name)
    gone = BaselineOut.of(baseline)
    unpin(member, baseline)
    return gone


def _named(member: Member, name: str) -> PinnedBaseline:
    found = None if "\0" in name else baselines_of(member.team).filter(name=name).first()
    if found is None:
        raise NotFound("There is no such baseline.")
    return found
