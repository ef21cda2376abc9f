"""Links that show something of the team, frozen, without a login."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import ShareKind, ShareState
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.shapes import MAX_ID, Body, Flag, RunNumber, Whole
from experiments.api.verdicts import absolute
from experiments.models import ShareLink
from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import parse_time
from experiments.telling.sharing.links import DEFAULT_DAYS, MAX_DAYS, revoke_link, share
from experiments.telling.sharing.subjects import Subject

router = Router(auth=READ, tags=["shares"])


class ShareOut(BaseModel):
    id: int
    kind: ShareKind
    subject: str
    state: ShareState
    created_by: str | None
    created_at: datetime
    expires_at: datetime | None = Field(description="null = never")
    revoked_at: datetime | None
    opened_count: int
    last_opened_at: datetime | None

    @classmethod
    def of(cls, link: ShareLink) -> ShareOut:
        return cls(
            id=link.pk,
            kind=link.kind,
            subject=link.subject,
            state=link.state,
            created_by=link.created_by.get_username() if link.created_by else None,
            created_at=link.created_at,
            expires_at=link.expires_at,
            revoked_at=link.revoked_at,
            opened_count=link.opened_count,
            last_opened_at=link.last_opened_at,
        )


class ShareMade(ShareOut):
    url: str = Field(
        description="The page; it is not told again. Below it: badge.svg, chart.svg, chart.png, report.pdf, embed/"
    )


class SharePage(BaseModel):
    items: list[ShareOut]
    next_cursor: str = Field(description="Empty at the end")


class ShareIn(Body):
    """What to share.

    `runs` of a run or a comparison (the baseline first), `experiment` of a report or of scaling, `series` of a trend,
    `search`, `bisection`.
    """

    kind: Literal["run", "comparison", "experiment", "trend", "scaling", "search", "bisection"]
    runs: list[RunNumber] = Field([], max_length=20)
    experiment: Whole | None = Field(None, ge=1, le=MAX_ID)
    search: Whole | None = Field(None, ge=1, le=MAX_ID)
    bisection: Whole | None = Field(None, ge=1, le=MAX_ID)
    series: str = Field("", max_length=64, description="The fingerprint of the trend's series")
    metric: str = Field("throughput_rps", max_length=60)
    recipe: str = Field("", max_length=120)
    since: str = Field("", max_length=40, description="A date or time; the trend begins there")
    until: str = Field("", max_length=40, description="A date or time; the trend ends before it")
    days: Whole = Field(DEFAULT_DAYS, ge=1, le=MAX_DAYS)
    never_expires: Flag = Field(False, description="In place of `days`; for admins")


@router.get("", response=SharePage)
def list_shares(
    request: HttpRequest, cursor: int = Query(0, ge=0, le=MAX_ID), limit: int = Query(100, ge=1, le=500)
) -> SharePage:
    """The team's links, the newest first."""
    links = ShareLink.objects.for_team(member_of(request).team).select_related("created_by").defer("sheet")
    rows, before = links.newest_page(cursor or None, limit)
    return SharePage(
        items=[ShareOut.of(link) for link in rows],
        next_cursor=str(before or ""),
    )


@router.post("", response={201: ShareMade}, auth=WRITE)
def create_share(request: HttpRequest, payload: ShareIn) -> Status[ShareMade]:
    """Freeze something as it is now and make a link to it. Editors may."""
    member = member_of(request)
    made = share(member, _subject(request, payload), days=None if payload.never_expires else payload.days)
    url = absolute(request, f"/s/{made.token}/")
    return Status(201, ShareMade(**ShareOut.of(made.link).model_dump(), url=url))


@router.delete("/{int:share_id}", response=ShareOut, auth=WRITE)
def revoke_share(request: HttpRequest, share_id: int) -> ShareOut:
    """End a link at once; who opens it then sees the same as for one that never was. Editors may."""
    return ShareOut.of(revoke_link(member_of(request), share_id))


_NEEDED = {"run": "runs", "comparison": "runs", "scaling": "experiment", "trend": "series"}
"""The field that says what is shared, where it is not called as the kind."""


def _subject(request: HttpRequest, payload: ShareIn) -> Subject:
    needed = _NEEDED.get(payload.kind, payload.kind)
    if not getattr(payload, needed):
        raise RequestError(f"What is to be shared as {payload.kind!r} is named in `{needed}`.", field=needed)
    series_id = None
    if payload.kind == "trend":
        series = member_of(request).team.series.filter(fingerprint=payload.series)
        series_id = series.values_list("pk", flat=True).first()
    return Subject(
        kind=ShareLink.Kind(payload.kind),
        runs=tuple(payload.runs),
        experiment_id=payload.experiment,
        inquiry_id=payload.search if payload.kind == "search" else payload.bisection,
        series_id=series_id,
        metric=payload.metric,
        recipe=payload.recipe,
        since=parse_time(payload.since, "since") if payload.since else None,
        until=parse_time(payload.until, "until") if payload.until else None,
    )
