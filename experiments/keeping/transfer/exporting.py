"""The export: one consistent look at the database, written row by row."""

from __future__ import annotations

import base64
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.models import ForeignKey
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule

from experiments.keeping.transfer.archive import FORMAT, MANIFEST, Manifest, artifact_name, lines_name, writer
from experiments.keeping.transfer.parts import PARTS, TEAM_FIELDS, Part
from experiments.models import Artifact, Run, Team
from experiments.registry.runs.file_store import PART_BYTES, opened
from experiments.registry.teams.audit import record

CRONTAB = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
_CHUNK = 500
_CHUNK_OF_FILES = 4


@dataclass(frozen=True)
class Exported:
    """How many rows of each part were written; `left_out`: runs that are not over."""

    rows: dict[str, int]
    left_out: int


@dataclass
class _Names:
    """People and timetables by what they are called anywhere, looked up once each."""

    users: dict[int, str] = field(default_factory=dict)
    emails: dict[str, str] = field(default_factory=dict)
    crontabs: dict[int, list[str]] = field(default_factory=dict)

    def user(self, pk: int) -> str:
        if pk not in self.users:
            found = get_user_model().objects.get(pk=pk)
            self.users[pk] = found.get_username()
            self.emails[found.get_username()] = found.email
        return self.users[pk]

    def crontab(self, pk: int) -> list[str]:
        if pk not in self.crontabs:
            found = CrontabSchedule.objects.get(pk=pk)
            self.crontabs[pk] = [*(str(getattr(found, name)) for name in CRONTAB), str(found.timezone)]
        return self.crontabs[pk]


def export_team(team: Team, path: Path) -> Exported:
    """Write the team into `path`, which must not exist yet; nothing is left there when it fails. FileExistsError."""
    if path.exists():
        raise FileExistsError(f"{path} is there already.")
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.touch(mode=0o600)
    try:
        with _one_look():
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
                rows = _write(team, archive)
            left_out = Run._base_manager.filter(team=team).exclude(state=Run.State.FINISHED).count()
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    after = {"runs": rows["run"], "left_out": left_out}
    record(team, "team.export", f"team {team.slug}", after=after)
    return Exported(rows, left_out)


@contextmanager
def _one_look() -> Iterator[None]:
    """Everything as it was at one moment, while others go on writing."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # nothing is asked during a file
        yield


def _write(team: Team, archive: zipfile.ZipFile) -> dict[str, int]:
    names, counts = _Names(), {}
    for part in PARTS:
        with writer(archive, lines_name(part.name)) as out:
            counts[part.name] = 0
            for row in _rows(part, team, names):
                out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                counts[part.name] += 1
    kept = next(part for part in PARTS if part.model is Artifact).rows(team)
    for file in kept.only("name", "content", "stored").iterator(chunk_size=_CHUNK_OF_FILES):
        with opened(file) as content, writer(archive, artifact_name(file.pk)) as out:
            shutil.copyfileobj(content, out, PART_BYTES)
    with writer(archive, lines_name("user")) as out:
        for name, email in names.emails.items():
            out.write(json.dumps({"username": name, "email": email}).encode() + b"\n")
    manifest = Manifest(
        format=FORMAT,
        benchhub=settings.VERSION,
        made_at=timezone.now().isoformat(),
        team={name: _plain(getattr(team, name)) for name in TEAM_FIELDS},
        rows=counts,
    )
    archive.writestr(MANIFEST, manifest.model_dump_json())
    return counts


def _rows(part: Part, team: Team, names: _Names) -> Iterator[dict[str, Any]]:
    columns = [(column.attname, _reader(column, names)) for column in part.fields if column.attname != "team_id"]
    found = part.rows(team).values_list(*(name for name, _ in columns))
    for values in found.iterator(chunk_size=_CHUNK):
        yield {
            name: None if value is None else read(value) for (name, read), value in zip(columns, values, strict=True)
        }


def _reader(column: Any, names: _Names) -> Any:
    if isinstance(column, ForeignKey) and column.related_model is get_user_model():
        return names.user
    if isinstance(column, ForeignKey) and column.related_model is CrontabSchedule:
        return names.crontab
    return _plain


def _plain(value: Any) -> Any:
    """The value as JSON has it; the importer knows from the column what it was."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    return str(value) if isinstance(value, UUID) else value
