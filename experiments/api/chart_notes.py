"""Notes of people on trends and on the timelines of runs."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import AwareDatetime, BaseModel, Field

from experiments.api.finding import find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body
from experiments.models import Annotation, Member, Run, Series
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.notes import chart_notes

router = Router(auth=READ, tags=["annotations"])


class AnnotationOut(BaseModel):
    id: int
    series: str | None = Field(description="The fingerprint of the series that it is on")
    run: int | None = Field(description="The number of the run on whose timeline it is")
    at: AwareDatetime
    text: str
    author: str | None
    written_at: AwareDatetime

    @classmethod
    def of(cls, note: Annotation) -> AnnotationOut:
        return cls(
            id=note.pk,
            series=note.series.fingerprint if note.series else None,
            run=note.run.number if note.run else None,
            at=note.at,
            text=note.text,
            author=note.author.get_username() if note.author else None,
            written_at=note.written_at,
        )


class AnnotationIn(Body):
    series: str | None = Field(None, max_length=64, description="A fingerprint: the note stands on the trends of it")
    run: int | None = Field(
        None,
        ge=1,
        le=2**31 - 1,
        description="Without a series: on its timeline; with one: where it stands in the trend",
    )
    at: AwareDatetime | None = Field(None, description="With its offset from UTC; without it a run's end or start")
    text: str = Field(min_length=1, max_length=chart_notes.MAX_TEXT)


class AnnotationChange(Body):
    at: AwareDatetime | None = None
    text: str | None = Field(None, min_length=1, max_length=chart_notes.MAX_TEXT)


@router.get("", response=list[AnnotationOut])
@paged
def list_annotations(
    request: HttpRequest,
    series: str = Query("", max_length=64, description="The fingerprint of a series"),
    run: int | None = Query(None, ge=1, le=2**31 - 1, description="The number of a run"),
) -> list[AnnotationOut]:
    """The notes on one series, or on one run; without either the team's newest."""
    member = member_of(request)
    if series:
        found = chart_notes.of_series([_series(member, series)])
    elif run is not None:
        found = chart_notes.of_run(find_run(member, run))
    else:
        found = chart_notes.of_team(member.team).order_by("-id")[: chart_notes.MOST_NOTES]
    return [AnnotationOut.of(note) for note in found]


@router.post("", response={201: AnnotationOut}, auth=LAUNCH)
@idempotent
def create_annotation(request: HttpRequest, payload: AnnotationIn) -> Status[AnnotationOut]:
    """Say what happened at a moment: on the trends of a series, or on the timeline of a run."""
    member = member_of(request)
    run = None if payload.run is None else find_run(member, payload.run)
    if payload.series is not None:
        subject: Series | Run = _series(member, payload.series)
        at = payload.at or (chart_notes.moment_of(run) if run else None)
    elif run is not None:
        subject, at = run, payload.at or run.measured_at or run.started_at or run.queued_at
    else:
        raise RequestError("Say which series or which run the note is on.", field="series")
    if at is None:
        raise RequestError("Say at which time, or at which run.", field="at")
    return Status(201, AnnotationOut.of(chart_notes.annotate(member, subject, at, payload.text)))


@router.patch("/{int:annotation_id}", response=AnnotationOut, auth=LAUNCH)
def change_annotation(request: HttpRequest, annotation_id: int, payload: AnnotationChange) -> AnnotationOut:
    """Another text or time: of your own note, or as an editor of anybody's."""
    member = member_of(request)
    note = chart_notes.find_annotation(member, annotation_id)
    chart_notes.change(member, note, at=payload.at, text=payload.text)
    return AnnotationOut.of(note)


@router.delete("/{int:annotation_id}", response=AnnotationOut, auth=LAUNCH)
def delete_annotation(request: HttpRequest, annotation_id: int) -> AnnotationOut:
    """Take a note away; the answer is what it said."""
    member = member_of(request)
    note = chart_notes.find_annotation(member, annotation_id)
    said = AnnotationOut.of(note)
    chart_notes.remove(member, note)
    return said


def _series(member: Member, fingerprint: str) -> Series:
    found: Series | None = Series.objects.for_team(member.team).filter(fingerprint=fingerprint).first()
    if found is None:
        raise NotFound(f"There is no series {fingerprint}.")
    return found
