"""What happened, as annotations of dashboards: in the shape that Grafana's Infinity data source reads."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, member_of
from experiments.api.plumbing.paging import paged
from experiments.registry.runs.windows import unix_ms
from experiments.telling.observing.happened import KINDS, USUAL, Asked, happened, kinds_in
from experiments.telling.observing.mark import Mark
from experiments.telling.run_list.listing import RunFilter

DAY_MS = 24 * 3600 * 1000

router = Router(auth=READ, tags=["annotations"])


class GrafanaAnnotationOut(BaseModel):
    """A moment, or a span when `timeEnd` is not null; times are in milliseconds since 1970."""

    time: int
    timeEnd: int | None = Field(description="null for a moment, and for a host that is still out of service")  # noqa: N815 - Grafana's word
    title: str
    text: str
    tags: list[str]
    url: str = Field(description="The page about it")

    @classmethod
    def of(cls, mark: Mark) -> GrafanaAnnotationOut:
        return cls(
            time=mark.time_ms,
            timeEnd=mark.end_ms,
            title=mark.title,
            text=mark.text,
            tags=list(mark.tags),
            url=mark.url,
        )


@router.get("/annotations/grafana", response=list[GrafanaAnnotationOut])
@paged
def list_grafana_annotations(
    request: HttpRequest,
    start: int | None = Query(None, alias="from", description="Milliseconds since 1970; a day before `to` if left out"),
    end: int | None = Query(None, alias="to", description="Milliseconds since 1970; now if left out"),
    host: str = Query("", max_length=4000, description="Names of hosts with commas between; all when empty"),
    label: list[str] = Query(
        [], description="key=value that a run must have, commas and all; may be given several times"
    ),
    kinds: str = Query(
        "", max_length=200, description=f"Of {', '.join(KINDS)}, with commas between; {', '.join(USUAL)} when empty"
    ),
) -> list[GrafanaAnnotationOut]:
    """What happened in a window, the newest first: runs, measured loads, phases, steps, alerts, hosts, notes."""
    now = timezone.now()
    to_ms = unix_ms(now) if end is None else end
    asked = Asked(
        max(to_ms - DAY_MS, 0) if start is None else start,
        to_ms,
        kinds=kinds_in(kinds),
        hosts=tuple(filter(None, (name.strip() for name in host.split(",")))),
        labels=RunFilter.from_query({}, label=label).label,
    )
    return [GrafanaAnnotationOut.of(mark) for mark in happened(member_of(request).team, asked, now)]
