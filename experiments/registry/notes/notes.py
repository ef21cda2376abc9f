"""Notes and tags that people write on runs and experiments. Who wrote what before stands in the audit."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from experiments.models import Experiment, Member, Role, Run
from experiments.registry.errors import RequestError
from experiments.registry.notes.labels import check_tags
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MAX_NOTES = 10_000


def write_notes(member: Member, subject: Run | Experiment, text: str) -> None:
    """Replace the notes (Markdown, at most 10,000 characters); an empty text takes them off. Launchers may."""
    require(member, Role.LAUNCHER)
    text = text.replace("\r\n", "\n").strip()
    if len(text) > MAX_NOTES or "\0" in text:
        raise RequestError(f"Notes have at most {MAX_NOTES} characters; these have {len(text)}.", field="notes")
    with transaction.atomic():
        locked = type(subject)._default_manager.select_for_update(of=("self",)).get(pk=subject.pk)
        if locked.notes == text:
            return
        before, locked.notes = locked.notes, text
        locked.notes_by, locked.notes_at = member.user, timezone.now()
        locked.save(update_fields=["notes", "notes_by", "notes_at"])
        name = f"run #{locked.number}" if isinstance(locked, Run) else f"experiment {locked.name}"
        audit.record(member, "notes.write", name, before={"notes": before}, after={"notes": text})
    subject.refresh_from_db(fields=["notes", "notes_by", "notes_at"])


def set_tags(member: Member, run: Run, tags: Iterable[str]) -> None:
    """Give the run exactly these tags. Launchers may."""
    require(member, Role.LAUNCHER)
    wanted = check_tags(tags)
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        if locked.tags == wanted:
            return
        before, locked.tags = locked.tags, wanted
        locked.save(update_fields=["tags"])
        audit.record(member, "run.tags", f"run #{locked.number}", before={"tags": before}, after={"tags": wanted})
    run.refresh_from_db(fields=["tags"])
