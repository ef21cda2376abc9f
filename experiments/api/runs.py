"""Runs: start, find, look at, cancel and repeat them."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query as QueryOf
from ninja import Router
from ninja.params.functions import Body as FromBody
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Discriminator, Field, Tag

from agents.profilers.choosing import ProfilerNames
from agents.spec import RunSpec
from experiments.api.choices import AnyRunState, RunOutcome, RunValidity, Time
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import tell_pages_of
from experiments.api.plumbing.rendering import rendered
from experiments.api.plumbing.sparse import FIELDS, chosen_fields, sparse
from experiments.api.setups import SetupIn
from experiments.api.shapes import (
    Body,
    Labels,
    ListedRun,
    Priority,
    Retries,
    RunDetail,
    Tags,
    ThroughputChangeOut,
    line_fields,
    run_fields,
    run_url,
)
from experiments.api.verdicts import MAX_WAIT_S, VerdictOut, absolute, waited_for
from experiments.asking.launching import cancelling, launch
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.specs import choice_of
from experiments.judging.comparing.changes import throughput_changes
from experiments.judging.gate.rules import Inconclusive
from experiments.judging.gate.tries import gate_of_tries
from experiments.models import Member
from experiments.registry.notes.labels import check_labels, check_tags
from experiments.running.queue.priorities import PRIORITIES, change_priority
from experiments.running.queue.waiting import expected_at_launch, expected_of
from experiments.telling.run_list.csv_response import CsvResponse
from experiments.telling.run_list.lines import lines_page
from experiments.telling.run_list.listing import MAX_LIMIT, RunFilter, csv_rows, runs_page

router = Router(auth=READ, tags=["runs"])


class RunByNames(SetupIn):
    """A run of stored documents on registered hosts."""

    tags: Tags = []
    notes: str = Field("", max_length=10_000)
    retries: Retries = 0
    profilers: ProfilerNames = Field((), description="With any, it is a profiled run, which counts nowhere")

    def choice(self, member: Member) -> Choice:
        return replace(super().choice(member), profilers=tuple(self.profilers))


class RunBySpec(Body):
    """A run as a whole RunSpec, with labels."""

    spec: RunSpec
    labels: Labels = {}
    tags: Tags = []
    notes: str = Field("", max_length=10_000)
    priority: Priority = "normal"
    retries: Retries = 0


def _form(body: Any) -> str:
    """Which of the three forms a body has, so that errors speak of that form only."""
    if not isinstance(body, dict):
        return "by-names"
    if "spec" in body:
        return "by-spec"
    return "run-spec" if isinstance(body.get("application"), dict) else "by-names"


RunIn = Annotated[
    Annotated[RunByNames, Tag("by-names")] | Annotated[RunBySpec, Tag("by-spec")] | Annotated[RunSpec, Tag("run-spec")],
    Discriminator(_form),
]


class RunChange(Body):
    priority: Priority = Field(description="Of a queued run; `high` needs the role editor")


Number = Annotated[float | None, Field(allow_inf_nan=False)]
Several = Annotated[str, Field(description="One of these, with commas between")]


class RunQuery(BaseModel):
    """The filters of the runs page."""

    query: str = Field("", description="#number, parts of names, beginnings of words in labels and tags, key:value")
    state: AnyRunState = ""
    outcome: RunOutcome = ""
    validity: RunValidity = ""
    recipe: str = ""
    workload: str = ""
    application: str = ""
    sut: str = ""
    driver: str = ""
    tag: str = ""
    label: list[str] = Field([], description="key=value, commas and all; may be given several times")
    param: list[str] = Field(
        [], description="name=value of a chosen parameter, commas and all; may be given several times"
    )
    experiment: str = ""
    since: Time = Field(None, description="Queued at or after this time")
    until: Time = Field(None, description="Queued before this time")
    archived: str = Field("", description="true for the archived runs, which are left out otherwise")

    number__gte: Number = None
    number__lte: Number = None
    number__in: Several = ""
    experiment__in: Several = ""
    state__in: Several = ""
    outcome__in: Several = ""
    validity__in: Several = ""
    recipe__in: Several = ""
    workload__in: Several = ""
    application__in: Several = ""
    sut__in: Several = ""
    driver__in: Several = ""
    queued_at__gte: Time = None
    queued_at__lte: Time = None
    started_at__gte: Time = None
    started_at__lte: Time = None
    finished_at__gte: Time = None
    finished_at__lte: Time = None
    throughput_rps__gte: Number = None
    throughput_rps__lte: Number = None
    latency_p50_ms__gte: Number = None
    latency_p50_ms__lte: Number = None
    latency_p99_ms__gte: Number = None
    latency_p99_ms__lte: Number = None
    errors_total__gte: Number = None
    errors_total__lte: Number = None
    sut_cpu_ratio__gte: Number = None
    sut_cpu_ratio__lte: Number = None
    driver_cpu_ratio__gte: Number = None
    driver_cpu_ratio__lte: Number = None

    def as_filter(self) -> RunFilter:
        given = self.model_dump(exclude={"label", "param"}, exclude_none=True)
        return RunFilter.from_query(given, label=self.label, param=self.param)


class RunPageOut(BaseModel):
    items: list[ListedRun]
    next_cursor: str = Field(description="Empty at the end")
    previous_cursor: str


@router.get("", response=RunPageOut, exclude_unset=True)
def list_runs(
    request: HttpRequest,
    filters: QueryOf[RunQuery],
    sort: str = "-number",
    cursor: str = Query("", max_length=500),
    limit: int = Query(50, ge=1, le=MAX_LIMIT),
    fields: str = FIELDS,
) -> Any:
    """Runs, page by page. Sorted by number, throughput_rps, latency_p99_ms or finished_at; `-` is descending."""
    member = member_of(request)
    where = {"sort": sort, "cursor": cursor, "limit": limit}
    if "throughput_change" in fields:
        changed = _with_changes(member, filters.as_filter(), **where)
        tell_pages_of(request, changed)
        return sparse(changed, ListedRun, fields)
    answer = _without_changes(member, filters.as_filter(), chosen_fields(ListedRun, fields), **where)
    tell_pages_of(request, answer)
    return HttpResponse(rendered(answer), content_type="application/json; charset=utf-8")


def _without_changes(member: Member, runs: RunFilter, chosen: set[str], **where: Any) -> dict[str, Any]:
    page, names = lines_page(member.team, runs, **where)
    items = [line_fields(line, names, member.team.slug) for line in page.rows]
    if chosen:
        items = [{name: item[name] for name in item if name in chosen} for item in items]
    return {"items": items, "next_cursor": page.next_cursor, "previous_cursor": page.previous_cursor}


def _with_changes(member: Member, runs: RunFilter, **where: Any) -> RunPageOut:
    page = runs_page(member.team, runs, **where)
    changes = throughput_changes(member.team, page.rows)
    items = [
        ListedRun(**run_fields(run, member.team.slug), throughput_change=ThroughputChangeOut.of(changes.get(run.pk)))
        for run in page.rows
    ]
    return RunPageOut(items=items, next_cursor=page.next_cursor, previous_cursor=page.previous_cursor)


@router.get(
    "/csv",
    openapi_extra={
        "responses": {
            200: {
                "description": "OK",
                "headers": {"Content-Disposition": {}},
                "content": {"text/csv": {"schema": {"type": "string"}}},
            }
        }
    },
)
def list_runs_csv(
    request: HttpRequest,
    filters: QueryOf[RunQuery],
    sort: str = "-number",
    columns: str = Query("", max_length=1000, description="Names with commas between; all when empty"),
) -> StreamingHttpResponse:
    """The same list as CSV, all pages of it, sent while it is read."""
    chosen = [name.strip() for name in columns.split(",") if name.strip()]
    rows = csv_rows(member_of(request).team, filters.as_filter(), sort, chosen)
    return CsvResponse(rows, filename="runs.csv")


@router.post("", response={202: RunDetail}, auth=LAUNCH)
@idempotent
def create_run(request: HttpRequest, payload: RunIn = FromBody(...)) -> Status[RunDetail]:
    """Queue a run: named documents and parameters, or a whole RunSpec as `GET /runs/{number}` shows it."""
    member = member_of(request)
    if isinstance(payload, RunByNames):
        choice = payload.choice(member)
    else:
        choice = choice_of(member, payload if isinstance(payload, RunSpec) else payload.spec)
    extras = payload if isinstance(payload, RunByNames | RunBySpec) else None
    run = launch.launch_run(
        member,
        choice,
        labels=check_labels(extras.labels) if extras else {},
        tags=check_tags(extras.tags) if extras else [],
        notes=extras.notes if extras else "",
        priority=PRIORITIES[extras.priority if extras else "normal"],
        retries=extras.retries if extras else 0,
    )
    return Status(202, _launched(member, run.number))


@router.get("/{int:number}", response=RunDetail)
def get_run(request: HttpRequest, number: int, fields: str = FIELDS) -> Any:
    """One run."""
    chosen, member = chosen_fields(RunDetail, fields), member_of(request)
    expected = expected_of if not chosen or "waiting" in chosen else None  # the queue is long, and is asked for often
    return sparse(RunDetail.of(find_run(member, number), member.team.slug, expected), RunDetail, fields)


@router.patch("/{int:number}", response=RunDetail, auth=LAUNCH)
def change_run(request: HttpRequest, number: int, payload: RunChange) -> RunDetail:
    """Give a queued run another priority."""
    member = member_of(request)
    change_priority(member, find_run(member, number), PRIORITIES[payload.priority])
    return _detail(member, number)


@router.post("/{int:number}/cancel", response={202: RunDetail}, auth=LAUNCH)
@idempotent
def cancel_run(request: HttpRequest, number: int) -> Status[RunDetail]:
    """Ask for the end of a run. A queued one ends at once, a running one restores its host first."""
    member = member_of(request)
    cancelling.cancel_run(member, find_run(member, number))
    return Status(202, _detail(member, number))


@router.post("/{int:number}/rerun", response={202: RunDetail}, auth=LAUNCH)
@idempotent
def rerun(request: HttpRequest, number: int) -> Status[RunDetail]:
    """Queue the same versions, parameters and hosts again."""
    member = member_of(request)
    return Status(202, _launched(member, launch.rerun(member, find_run(member, number)).number))


@router.get("/{int:number}/verdict", response=VerdictOut)
async def run_verdict(
    request: HttpRequest,
    number: int,
    wait: int = Query(0, ge=0, le=MAX_WAIT_S, description="Seconds"),
    inconclusive: Inconclusive = "neutral",
) -> VerdictOut:
    """pass = the run is valid, fail = invalid, inconclusive = suspect or still running, error = it failed.

    Of a run that was tried again the newest try decides, and is waited for.
    """
    member = member_of(request)

    def look() -> VerdictOut:
        verdict = gate_of_tries(find_run(member, number), inconclusive)
        url = absolute(request, run_url(member.team.slug, verdict.decided_by or number))
        return VerdictOut.of(verdict, title=f"Run #{verdict.decided_by}", url=url)

    return await waited_for(look, wait)


def _detail(member: Member, number: int) -> RunDetail:
    return RunDetail.of(find_run(member, number), member.team.slug)


def _launched(member: Member, number: int) -> RunDetail:
    return RunDetail.of(find_run(member, number), member.team.slug, expected_at_launch)
