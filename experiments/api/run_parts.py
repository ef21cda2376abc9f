"""What a run left behind: events, log, effective configuration, samples, metrics, artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from ninja import Router
from ninja.params.functions import Header, Query
from pydantic import BaseModel, Field

from experiments.analysis.thinning import thinned
from experiments.api import streams
from experiments.api.choices import LogLevel, MetricDirection
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import READ, member_of
from experiments.api.plumbing.paging import CURSOR, LIMIT, paged, query_of_page, tell_page
from experiments.api.shapes import artifact_url
from experiments.judging.comparing.history import samples_of
from experiments.judging.evidence.load_parts import load_parts
from experiments.models import ARTIFACT_BYTES, Member, RunEvent
from experiments.registry.errors import NotFound
from experiments.registry.logs.shown_events import shown
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.telling.run_list.run_file import run_file

router = Router(auth=READ, tags=["runs"])

MAX_EVENTS = 1000
_LAST_SEQ = 2**31 - 1
_SERIES_AT_ONCE = 20
"""In memory with all of their points, of which an answer has 2,000 at most."""


class EventOut(BaseModel):
    seq: int
    kind: str
    at: datetime
    payload: dict[str, Any]


class EventsOut(BaseModel):
    items: list[EventOut]
    finished: bool = Field(description="True when no event can follow")


class LogEntry(BaseModel):
    seq: int
    at: datetime
    source: str
    level: LogLevel
    lines: list[str]


class LogOut(BaseModel):
    items: list[LogEntry]
    finished: bool


class ConfigOut(BaseModel):
    digest: str
    values: dict[str, str] = Field(description="What the machines really had: `section.path` -> value")


class SeriesOut(BaseModel):
    """One channel of one host; t = 0 is where measuring began. Over 2,000 points it is thinned out."""

    role: str
    channel: str
    unit: str
    at_s: list[float]
    values: list[float]


class FigureOut(BaseModel):
    name: str
    label: str
    unit: str
    direction: MetricDirection
    value: float
    hidden: bool = Field(description="True when saturation makes this figure meaningless")


class LoadPartOut(BaseModel):
    """One of several load tools: what it measured, and how busy its host was."""

    driver: str
    url: str
    connections: int | None = Field(description="Or users, for a tool that has those")
    requests: int | None
    share_ratio: float | None = Field(description="Its part of all requests")
    errors: int
    throughput_rps: float | None
    p99_ms: float | None
    driver_cpu_ratio: float | None
    late_s: float | None = Field(description="How long after the agreed start it began")


class ArtifactOut(BaseModel):
    name: str
    media_type: str
    sha256: str
    size_bytes: int
    url: str = Field(description="Where the file is, with a token")
    created_at: datetime


@router.get("/{int:number}/events", response=EventsOut, openapi_extra=streams.EXTRA)
async def list_events(
    request: HttpRequest,
    number: int,
    after: int = Query(0, ge=0, le=_LAST_SEQ, description="Only events with a higher sequence number"),
    limit: int = Query(MAX_EVENTS, ge=1, le=MAX_EVENTS, description="Of a page; a stream has no limit"),
    last_event_id: int | None = Header(
        None, alias="Last-Event-ID", ge=0, le=_LAST_SEQ, description="In place of `after` when a stream goes on"
    ),
) -> Any:
    """The run's events in order: a page as JSON; with `Accept: text/event-stream` a stream, also of those to come."""
    if streams.wants_stream(request):
        return await streams.follow(request, number, after if last_event_id is None else last_event_id)
    page = await sync_to_async(_page_of_events)(member_of(request), number, after, limit)
    _tell_next(request, page.items, limit)
    return page


def _tell_next(request: HttpRequest, found: Sequence[RunEvent | EventOut], limit: int) -> None:
    if len(found) == limit:
        tell_page(request, found[-1].seq, name="after")


def _page_of_events(member: Member, number: int, after: int, limit: int) -> EventsOut:
    run = find_run(member, number)
    found = list(run.events.filter(seq__gt=after).order_by("seq")[:limit])
    return EventsOut(
        items=[
            EventOut(seq=event.seq, kind=event.kind, at=event.at, payload=shown(event.kind, event.payload))
            for event in found
        ],
        finished=not run.is_live and len(found) < limit,
    )


@router.get("/{int:number}/log", response=LogOut)
def get_log(
    request: HttpRequest,
    number: int,
    after: int = Query(0, ge=0, le=_LAST_SEQ),
    limit: int = Query(MAX_EVENTS, ge=1, le=MAX_EVENTS),
) -> LogOut:
    """The lines that people read, in order; `after` is the last sequence number seen."""
    run = find_run(member_of(request), number)
    found = list(run.events.filter(seq__gt=after, kind="logged").order_by("seq")[:limit])
    _tell_next(request, found, limit)
    return LogOut(
        items=[
            LogEntry(
                seq=event.seq,
                at=event.at,
                source=event.payload["source"],
                level=event.payload["level"],
                lines=event.payload["lines"],
            )
            for event in found
        ],
        finished=not run.is_live and len(found) < limit,
    )


@router.get("/{int:number}/config", response=ConfigOut)
def get_config(request: HttpRequest, number: int) -> ConfigOut:
    """The effective configuration after tuning and start."""
    run = find_run(member_of(request), number)
    if run.config is None:
        raise NotFound(f"Run #{number} has no captured configuration.")
    return ConfigOut(digest=run.config.digest, values=run.config.values)


@router.get("/{int:number}/samples", response=list[SeriesOut])
def list_samples(
    request: HttpRequest,
    number: int,
    channel: list[str] = Query([], max_length=50, description="Only these channels"),
    cursor: int = CURSOR,
    limit: int = LIMIT,
) -> list[SeriesOut]:
    """What the monitors read during the run."""
    found = []
    series_of_page = query_of_page(request, samples_of(find_run(member_of(request), number), channel), cursor, limit)
    for series in series_of_page.iterator(chunk_size=_SERIES_AT_ONCE):
        at_s, values = thinned(series.at_s, series.values)
        found.append(SeriesOut(role=series.role, channel=series.channel, unit=series.unit, at_s=at_s, values=values))
    return found


@router.get("/{int:number}/metrics", response=list[FigureOut])
@paged
def list_figures(request: HttpRequest, number: int) -> list[FigureOut]:
    """The run's figures with their units: the known ones in the order of the registry, then the team's own."""
    run = find_run(member_of(request), number)
    return [
        FigureOut(
            name=name,
            label=metric.label,
            unit=metric.unit,
            direction=metric.direction,
            value=run.metrics[name],
            hidden=run.hides_latency and name.startswith("latency_"),
        )
        for name, metric in metrics_of(run.team_id, run.metrics).items()
        if run.metrics.get(name) is not None
    ]


@router.get("/{int:number}/load-parts", response=list[LoadPartOut])
@paged
def list_load_parts(request: HttpRequest, number: int) -> list[LoadPartOut]:
    """What each load tool measured, where several ran at the same time: one per driver host and instance."""
    return [LoadPartOut(**asdict(row)) for row in load_parts(find_run(member_of(request), number))]


@router.get("/{int:number}/artifacts", response=list[ArtifactOut])
@paged
def list_artifacts(request: HttpRequest, number: int) -> list[ArtifactOut]:
    """The files of the run."""
    run = find_run(member_of(request), number)
    return [
        ArtifactOut(
            name=artifact.name,
            media_type=artifact.media_type,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            url=artifact_url(number, artifact.name),
            created_at=artifact.created_at,
        )
        for artifact in run.artifacts.defer("content").annotate(size_bytes=ARTIFACT_BYTES).order_by("name")
    ]


@router.get(
    "/{int:number}/artifacts/{name}",
    openapi_extra={
        "responses": {
            200: {
                "description": "OK",
                "headers": {"Content-Disposition": {}},
                "content": {"application/octet-stream": {"schema": {"type": "string"}}},
            },
            302: {"description": "Found", "headers": {"Location": {}}},
        }
    },
)
def get_artifact(request: HttpRequest, number: int, name: str) -> HttpResponseBase:
    """The file as the tool wrote it; 302: it is at the signed address for some minutes, which wants no token."""
    artifact = find_run(member_of(request), number).artifacts.filter(name=name).first()
    if artifact is None:
        raise NotFound("There is no such artifact.")
    disposition = f"attachment; filename*=UTF-8''{quote(artifact.name, safe='')}"
    return run_file(artifact, disposition=disposition, content_type="application/octet-stream")
