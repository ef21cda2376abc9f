"""Prometheus sources of the team, and what was read from them around a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import PrometheusAuth
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import ADMIN, LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag
from experiments.asking.prometheus import queries, reading, sources, trying
from experiments.models import PrometheusReading, PrometheusSource, Team
from experiments.registry.outgoing.addresses import MAX_URL

router = Router(auth=READ, tags=["prometheus"])
of_runs = Router(auth=READ, tags=["runs"])

AuthName = Literal["none", "bearer", "basic"]
_MAY_STAND = "; ".join(f"{{{name}}}: {said}" for name, said in queries.PLACEHOLDERS.items())
_SECRET = "The bearer token or the password; it is stored encrypted and not shown again"  # noqa: S105 - says what it is


class ChannelQueryIn(Body):
    channel: str = Field(
        min_length=1, max_length=queries.MAX_CHANNEL, description="The channel is named `prometheus.` and this"
    )
    query: str = Field(
        min_length=1, max_length=queries.MAX_PROMQL, description=f"PromQL, in which may stand: {_MAY_STAND}"
    )
    unit: str = Field("", max_length=queries.MAX_UNIT)
    role: str = Field(
        "sut", max_length=12, description="`sut`, `driver` (each driver host), or the role of a member of the system"
    )
    step_s: int = Field(queries.USUAL_STEP_S, ge=queries.SHORTEST_STEP_S, le=queries.LONGEST_STEP_S)
    label: str = Field(
        "",
        max_length=queries.MAX_CHANNEL,
        description="The label whose values tell several series apart: each becomes a channel; empty = one series",
    )

    def as_query(self) -> queries.ChannelQuery:
        return queries.ChannelQuery(**self.model_dump())


class ChannelQueryOut(BaseModel):
    channel: str
    query: str
    unit: str
    role: str
    step_s: int
    label: str


class PrometheusSourceOut(BaseModel):
    id: int
    name: str
    url: str
    auth: PrometheusAuth
    username: str
    queries: list[ChannelQueryOut]
    is_active: bool
    created_by: str | None
    created_at: datetime

    @classmethod
    def of(cls, source: PrometheusSource) -> PrometheusSourceOut:
        return cls(
            id=source.pk,
            name=source.name,
            url=source.url,
            auth=source.auth,
            username=source.username,
            queries=[ChannelQueryOut(**asdict(one)) for one in queries.queries_of(source.queries)],
            is_active=source.is_active,
            created_by=source.created_by.get_username() if source.created_by else None,
            created_at=source.created_at,
        )


class PrometheusSourceIn(Body):
    name: str = Field(min_length=1, max_length=120)
    url: str = Field(min_length=1, max_length=MAX_URL, examples=["https://prometheus.example.com"])
    queries: list[ChannelQueryIn] = Field(min_length=1, max_length=queries.MOST_QUERIES)
    auth: AuthName = "none"
    username: str = Field("", max_length=sources.MAX_USERNAME, description="Of the auth `basic`")
    secret: str = Field("", max_length=sources.MAX_SECRET, description=_SECRET)
    is_active: Flag = True


class PrometheusSourceChange(Body):
    """What is left out stays."""

    name: str | None = Field(None, min_length=1, max_length=120)
    url: str | None = Field(None, min_length=1, max_length=MAX_URL)
    queries: list[ChannelQueryIn] | None = Field(None, min_length=1, max_length=queries.MOST_QUERIES)
    auth: AuthName | None = None
    username: str | None = Field(None, max_length=sources.MAX_USERNAME, description="Of the auth `basic`")
    secret: str = Field("", max_length=sources.MAX_SECRET, description=_SECRET)
    is_active: Flag | None = None


class PrometheusSourceDeleted(BaseModel):
    deleted: str


class TryIn(Body):
    host: str = Field("", max_length=120, description="The host that the queries are about; empty = the first one")


class TriedOut(BaseModel):
    channel: str
    role: str
    asked: str = Field(description="The PromQL with its placeholders filled in")
    series: int
    points: int
    problem: str = Field(description="Why no channel can be made of it; empty = nothing is wrong with it")


class StoredChannel(BaseModel):
    role: str
    channel: str


class ReadingOut(BaseModel):
    """What was, or is to be, read of one source around the run."""

    source: int
    name: str
    tries: int
    next_at: datetime | None = Field(description="When it is asked next; null = it is over")
    read_at: datetime | None = Field(description="When channels were stored last; null = none were")
    problem: str = Field(description="What the last try met with, a line for each query; empty = nothing")
    clock_ahead_s: float | None = Field(description="How far its clock was ahead of the run's for certain")
    channels: list[StoredChannel] = Field(description="As `samples` of the run gives them")

    @classmethod
    def of(cls, row: PrometheusReading) -> ReadingOut:
        return cls(
            source=row.source_id,
            name=row.source.name,
            tries=row.tries,
            next_at=row.next_at,
            read_at=row.read_at,
            problem=row.problem,
            clock_ahead_s=row.clock_ahead_s,
            channels=[StoredChannel(role=role, channel=channel) for role, channel in row.channels],
        )


@router.get("", response=list[PrometheusSourceOut])
@paged
def list_prometheus_sources(request: HttpRequest) -> list[PrometheusSourceOut]:
    """The team's Prometheus sources by name, without their secrets."""
    return [PrometheusSourceOut.of(source) for source in sources.sources_of(member_of(request).team)]


@router.post("", response={201: PrometheusSourceOut}, auth=ADMIN)
@idempotent
def create_prometheus_source(request: HttpRequest, payload: PrometheusSourceIn) -> Status[PrometheusSourceOut]:
    """Have a Prometheus asked after each run; what it answers becomes channels of the run."""
    source = sources.create_source(member_of(request), _wanted(payload.model_dump(), payload.queries))
    return Status(201, PrometheusSourceOut.of(source))


@router.get("/{int:source_id}", response=PrometheusSourceOut)
def get_prometheus_source(request: HttpRequest, source_id: int) -> PrometheusSourceOut:
    """One source, without its secret."""
    return PrometheusSourceOut.of(sources.find_source(member_of(request), source_id))


@router.patch("/{int:source_id}", response=PrometheusSourceOut, auth=ADMIN)
def change_prometheus_source(
    request: HttpRequest, source_id: int, payload: PrometheusSourceChange
) -> PrometheusSourceOut:
    """Other values. Another address needs the token or password once more."""
    member = member_of(request)
    with transaction.atomic():  # what is left out stays as it is now, not as it was when it was read
        Team.objects.select_for_update(of=("self",), no_key=True).get(pk=member.team_id)  # the lock of `sources`
        source = sources.find_source(member, source_id)
        stored = queries.queries_of(source.queries)
        before = {name: getattr(source, name) for name in ("name", "url", "auth", "username", "is_active")}
        if payload.auth not in (None, PrometheusSource.Auth.BASIC):
            before["username"] = ""
        given = before | payload.model_dump(exclude_none=True)
        sources.change_source(member, source, _wanted(given, payload.queries, stored))
    return PrometheusSourceOut.of(source)


@router.delete("/{int:source_id}", response=PrometheusSourceDeleted, auth=ADMIN)
def delete_prometheus_source(request: HttpRequest, source_id: int) -> PrometheusSourceDeleted:
    """End a source, with whatever waits; the channels that runs have of it stay."""
    member = member_of(request)
    source = sources.find_source(member, source_id)
    sources.delete_source(member, source)
    return PrometheusSourceDeleted(deleted=source.name)


@router.post("/{int:source_id}/try", response=list[TriedOut], auth=ADMIN)
def try_prometheus_source(request: HttpRequest, source_id: int, payload: TryIn) -> list[TriedOut]:
    """Ask its queries about the last five minutes of a host now, and store nothing."""
    member = member_of(request)
    source = sources.find_source(member, source_id)
    return [TriedOut(**asdict(one)) for one in trying.try_source(member, source, payload.host)]


@of_runs.get("/{int:number}/prometheus", response=list[ReadingOut])
@paged
def list_run_readings(request: HttpRequest, number: int) -> list[ReadingOut]:
    """What was, or is to be, read of the team's Prometheus sources around the run."""
    return [ReadingOut.of(row) for row in reading.readings_of(find_run(member_of(request), number))]


@of_runs.post("/{int:number}/prometheus", response={202: list[ReadingOut]}, auth=LAUNCH)
@idempotent
def read_run_again(request: HttpRequest, number: int) -> Status[list[ReadingOut]]:
    """Ask all sources that are switched on about the run once more; what they say replaces what they said."""
    member = member_of(request)
    return Status(202, [ReadingOut.of(row) for row in reading.read_again(member, find_run(member, number))])


def _wanted(
    given: dict[str, Any], asked: Sequence[ChannelQueryIn] | None, stored: Sequence[queries.ChannelQuery] = ()
) -> sources.Wanted:
    chosen = stored if asked is None else [one.as_query() for one in asked]
    return sources.Wanted(**{**given, "queries": chosen})
