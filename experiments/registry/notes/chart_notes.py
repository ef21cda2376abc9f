"""Notes of people on charts: made, changed and taken away, each with its entry in the audit trail."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from experiments.models import Annotation, Member, Role, Run, Series, Team
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.errors import Forbidden, NotFound, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_TEXT = 200
MOST_NOTES = 200
"""On one chart; more than that nobody reads."""
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


@transaction.atomic
def annotate(member: Member, subject: Series | Run, at: datetime, text: str) -> Annotation:
    """A new note at a moment of a series or a run. Needs the role launcher."""
    require(member, Role.LAUNCHER)
    of = {"series": subject} if isinstance(subject, Series) else {"run": subject}
    if Annotation.objects.filter(**of).count() >= MOST_NOTES:
        raise RequestError(f"A chart has at most {MOST_NOTES} notes; delete one first.", field="text")
    made = Annotation.objects.create(team=member.team, at=_moment(at), text=_text(text), author_id=member.user_id, **of)
    audit.record(member, "annotation.create", _subject(made), after=_state(made))
    return made


@transaction.atomic
def change(member: Member, note: Annotation, *, at: datetime | None = None, text: str | None = None) -> None:
    """Another text or moment: one's own, or as an editor anybody's."""
    _require_own(member, note)
    _hold(note)
    before = _state(note)
    note.at = note.at if at is None else _moment(at)
    note.text = note.text if text is None else _text(text)
    note.save(update_fields=["at", "text", "written_at"])
    audit.record(member, "annotation.change", _subject(note), before=before, after=_state(note))


@transaction.atomic
def remove(member: Member, note: Annotation) -> None:
    """Take it away: one's own, or as an editor anybody's."""
    _require_own(member, note)
    _hold(note)
    audit.record(member, "annotation.delete", _subject(note), before=_state(note))
    note.delete()


def of_series(series: Collection[Series]) -> TeamOwnedQuerySet:
    """The notes on these series, the oldest moment first."""
    return _shown(Annotation.objects.filter(series__in=series))


def of_run(run: Run) -> TeamOwnedQuerySet:
    """The notes on the run's timeline, the oldest moment first."""
    return _shown(Annotation.objects.filter(run=run))


def of_team(team: Team) -> TeamOwnedQuerySet:
    """The team's notes, the oldest moment first, without those on runs in the trash."""
    return _shown(Annotation.objects.for_team(team).filter(run__trashed_at=None))


def find_annotation(member: Member, pk: int) -> Annotation:
    """The team's note; NotFound for another team's, or one on a run in the trash, as for none."""
    found = of_team(member.team).filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no note {pk}.")
    note: Annotation = found
    return note


def moment_of(run: Run) -> datetime:
    """Where a run stands on its trend."""
    if run.finished_at is None:
        raise RequestError(f"Run #{run.number} has not ended.", field="run")
    return run.finished_at


def _shown(notes: TeamOwnedQuerySet) -> TeamOwnedQuerySet:
    return notes.select_related("author", "run", "series").order_by("at", "id")


def _require_own(member: Member, note: Annotation) -> None:
    require(member, Role.LAUNCHER)
    if note.author_id != member.user_id and not Role(member.role).covers(Role.EDITOR):
        raise Forbidden("Only its author and editors may change a note.")


def _hold(note: Annotation) -> None:
    """Lock it. NotFound when somebody else has taken it away since it was read."""
    if Annotation.objects.select_for_update(of=("self",)).filter(pk=note.pk).first() is None:
        raise NotFound(f"There is no annotation {note.pk} any more.")


def _text(text: str) -> str:
    found = " ".join(text.replace("\0", " ").split())
    if not 0 < len(found) <= MAX_TEXT:
        raise RequestError(f"A note has between 1 and {MAX_TEXT} characters.", field="text")
    return found


def _moment(at: datetime) -> datetime:
    if not _EARLIEST <= at <= datetime.now(UTC) + timedelta(days=366):
        raise RequestError("A note stands between the year 2000 and a year from now.", field="at")
    return at


def _subject(note: Annotation) -> str:
    return f"run #{note.run.number}" if note.run else f"series {note.series}"


def _state(note: Annotation) -> dict[str, Any]:
    return {"at": note.at.isoformat(), "text": note.text}
