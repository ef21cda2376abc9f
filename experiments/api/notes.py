"""Notes of people on runs and experiments: Markdown as they wrote it, and as HTML that is safe in a page."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.finding import find_experiment, find_run
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.conditional import CHANGE_EXTRA, READ_EXTRA, insist_on_match, tagged
from experiments.api.shapes import Body
from experiments.models import Experiment, Run
from experiments.registry.notes.notes import MAX_NOTES, write_notes
from experiments.registry.notes.notes_html import notes_html

router = Router(auth=READ, tags=["notes"])


class NotesOut(BaseModel):
    text: str = Field(description="Markdown as it was written; empty = no notes")
    html: str = Field(description="The same as HTML, without any of the writer's own, pictures or foreign link schemes")
    written_by: str | None
    written_at: datetime | None

    @classmethod
    def of(cls, subject: Run | Experiment) -> NotesOut:
        return cls(
            text=subject.notes,
            html=notes_html(subject.notes),
            written_by=subject.notes_by.get_username() if subject.notes_by else None,
            written_at=subject.notes_at,
        )


class NotesIn(Body):
    text: str = Field(max_length=MAX_NOTES, description="Markdown; an empty text takes the notes off")


@router.get("/runs/{int:number}/notes", response=NotesOut, openapi_extra=READ_EXTRA)
def get_run_notes(request: HttpRequest, number: int) -> HttpResponse:
    """The notes of a run, with their ETag."""
    return tagged(request, NotesOut.of(find_run(member_of(request), number)))


@router.put("/runs/{int:number}/notes", response=NotesOut, auth=LAUNCH, openapi_extra=CHANGE_EXTRA)
def write_run_notes(request: HttpRequest, number: int, payload: NotesIn) -> HttpResponse:
    """Replace the notes of a run; the audit keeps what stood there before."""
    return _write(request, find_run(member_of(request), number), payload)


@router.get("/experiments/{int:experiment_id}/notes", response=NotesOut, openapi_extra=READ_EXTRA)
def get_experiment_notes(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """The notes of an experiment, with their ETag."""
    return tagged(request, NotesOut.of(find_experiment(member_of(request), experiment_id)))


@router.put("/experiments/{int:experiment_id}/notes", response=NotesOut, auth=LAUNCH, openapi_extra=CHANGE_EXTRA)
def write_experiment_notes(request: HttpRequest, experiment_id: int, payload: NotesIn) -> HttpResponse:
    """Replace the notes of an experiment; the audit keeps what stood there before."""
    return _write(request, find_experiment(member_of(request), experiment_id), payload)


def _write(request: HttpRequest, subject: Run | Experiment, payload: NotesIn) -> HttpResponse:
    with transaction.atomic():
        type(subject)._default_manager.select_for_update(of=("self",)).get(pk=subject.pk)
        subject.refresh_from_db(fields=["notes", "notes_by", "notes_at"])
        insist_on_match(request, NotesOut.of(subject))
        write_notes(member_of(request), subject, payload.text)
    return tagged(request, NotesOut.of(subject))
