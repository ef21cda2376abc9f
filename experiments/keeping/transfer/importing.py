"""The import: everything in one transaction, with new ids, or nothing at all."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import AutoField, BinaryField, CompositePrimaryKey, DateField, Field, ForeignKey, JSONField, Model
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule
from psycopg import sql

from experiments.asking.schedules.clock import FIELDS, crontab_of
from experiments.keeping.transfer.archive import ArchiveError, Manifest, content, lines, manifest_of, opened
from experiments.keeping.transfer.arriving import Row, arrive
from experiments.keeping.transfer.exporting import CRONTAB
from experiments.keeping.transfer.parts import PARTS, TEAM_FIELDS, Part, references
from experiments.models import Artifact, Team
from experiments.registry.errors import RequestError
from experiments.registry.runs.file_store import folder_of, put
from experiments.registry.teams.audit import record
from experiments.registry.teams.members import BETWEEN

_BATCH_ROWS = 1000
_BATCH_BYTES = 8 << 20
BINARY = "application/octet-stream"


@dataclass(frozen=True)
class Imported:
    """The team, and how many rows of each part were stored. `new_users`: accounts that nobody can sign in to yet."""

    team: Team
    rows: Mapping[str, int]
    new_users: tuple[str, ...]


@dataclass
class _Arrival:
    """What is known so far: old ids to new ones, accounts by their names in the archive, references to set later."""

    archive: zipfile.ZipFile
    team: Team
    users: Mapping[str, int]
    ids: dict[type[Model], dict[int, int]] = field(default_factory=dict)
    crontabs: dict[tuple[str, ...], int] = field(default_factory=dict)
    later: dict[tuple[type[Model], str, type[Model]], list[tuple[int, int]]] = field(default_factory=dict)


def import_team(path: Path, *, slug: str = "", users: Mapping[str, str] | None = None) -> Imported:
    """Store the team of an archive, as `slug` when that is given. ArchiveError says what is in the way.

    People are found by user name and e-mail address; `users` names the account here for a name in the archive. Who is
    not there gets an account without a password.
    """
    with opened(path) as archive:
        manifest = manifest_of(archive)
        try:
            with transaction.atomic():
                return _import(archive, manifest, slug, users or {})
        except (
            IntegrityError,
            DataError,
            psycopg.IntegrityError,
            psycopg.DataError,
        ) as error:  # COPY's are not Django's
            first = str(error).splitlines()[0]
            raise ArchiveError(f"The archive does not fit together, and nothing was stored: {first}") from error
        except (KeyError, TypeError, ValueError, OverflowError, ValidationError) as error:
            raise ArchiveError(
                f"A row of the archive is not what it should be, and nothing was stored: {error!r}"
            ) from error


def _import(archive: zipfile.ZipFile, manifest: Manifest, slug: str, renamed: Mapping[str, str]) -> Imported:
    team = _team(manifest, slug)
    accounts, made = _accounts(archive, renamed, (str(manifest.team["slug"]), team.slug))
    arrival = _Arrival(archive, team, accounts)
    rows = {part.name: _store(part, arrival) for part in PARTS}
    for name, count in rows.items():
        if count != manifest.rows.get(name, 0):
            raise ArchiveError(f"The archive should hold {manifest.rows.get(name, 0):,} rows of {name}, not {count:,}.")
    _refer_back(arrival)
    after = {"from": manifest.team["slug"], "made_at": manifest.made_at, "runs": rows["run"]}
    record(team, "team.import", f"team {team.slug}", after=after)
    return Imported(team, rows, made)


def _team(manifest: Manifest, slug: str) -> Team:
    given = {name: manifest.team[name] for name in TEAM_FIELDS if name in manifest.team}
    given["slug"] = slug or given["slug"]
    try:
        validate_slug(given["slug"])
    except ValidationError as error:
        raise ArchiveError("A team's short name has only letters, digits, - and _.") from error
    if Team.objects.filter(slug=given["slug"]).exists():
        raise ArchiveError(
            f"There is a team {given['slug']} here already. Import this one under another short name: --as NAME."
        )
    if not isinstance(given["thresholds"], dict) or not isinstance(given["name"], str):
        raise ArchiveError("The manifest does not describe a team.")
    created_at = given.pop("created_at")
    team = Team.objects.create(**given)
    Team.objects.filter(pk=team.pk).update(created_at=created_at)
    return team


def _accounts(
    archive: zipfile.ZipFile, renamed: Mapping[str, str], slugs: tuple[str, str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Name in the archive -> account here; and the names of the people who had to get one.

    `slugs`: the team's short name there and here, which stands before the names of its services.
    """
    users, found, made = get_user_model().objects, {}, []
    there, here = (f"{slug}{BETWEEN}" for slug in slugs)
    for row, _ in lines(archive, "user"):
        name, email = str(row["username"]), str(row["email"])
        is_service = name.startswith(there)
        wanted = here + name.removeprefix(there) if is_service else renamed.get(name, name)
        account = users.filter(username=wanted).first()
        if account is None and name in renamed:
            raise ArchiveError(f"There is no account {renamed[name]} here, which {name} should become.")
        if account is not None and name not in renamed and account.email.lower() != email.lower():
            raise ArchiveError(
                f"There is an account {wanted} here with another e-mail address. If that is the same person, say "
                f"--user {name}={wanted}, else name the right account."
            )
        if account is None:
            account = users.create_user(wanted, email=email)
            made += [] if is_service else [wanted]
        found[name] = account.pk
    return found, tuple(made)


def _store(part: Part, arrival: _Arrival) -> int:
    """Store the rows of one part; returns how many there were."""
    model = part.model
    known = _must_be_known(part)
    if known:
        arrival.ids[model] = {}
    count = 0
    for batch in _batches(part, arrival):
        pks: Sequence[int | None] = _reserve(model, len(batch)) if known else [None] * len(batch)
        for old, pk in zip(batch, pks, strict=True):
            if pk is not None and arrival.ids[model].setdefault(int(old["id"]), pk) != pk:
                raise ArchiveError(f"The archive has two rows of {part.name} with the id {old['id']}.")
        _copy(part, arrival, batch, pks)
        count += len(batch)
    return count


def _batches(part: Part, arrival: _Arrival) -> Iterator[list[Row]]:
    known = {column.attname for column in part.fields}
    is_composite = isinstance(part.model._meta.pk, CompositePrimaryKey)
    batch: list[Row] = []
    size_bytes = 0
    for row, line_bytes in lines(arrival.archive, part.name):
        if is_composite:
            row.pop("id", None)  # archives of before months had one
        if unknown := sorted(row.keys() - known):
            raise ArchiveError(
                f"This BenchHub knows no {unknown[0][:60]!r} of a {part.name}; import it with a newer one."
            )
        batch.append(row)
        size_bytes += line_bytes
        if len(batch) == _BATCH_ROWS or size_bytes > _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch


def _must_be_known(part: Part) -> bool:
    """Whether the new ids are needed: other rows refer to these, or these to rows that come later."""
    later = {one.model for one in PARTS[PARTS.index(part) :]}
    return any(part.model in references(one).values() for one in PARTS) or bool(
        later.intersection(references(part).values())
    )


def _reserve(model: type[Model], count: int) -> list[int]:
    """New ids of the model's rows, ascending."""
    with connection.cursor() as cursor:
        table = model._meta.db_table
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", (table, count))
        return sorted(row[0] for row in cursor.fetchall())


def _copy(part: Part, arrival: _Arrival, batch: Sequence[Row], pks: Sequence[int | None]) -> None:
    """Store rows with COPY, in a quarter of the time of INSERT; it also leaves times alone that would be set to now.

    It may ask the database nothing.
    """
    columns = [
        column for column in part.model._meta.concrete_fields if not (isinstance(column, AutoField) and pks[0] is None)
    ]
    prepared = [_row(part, arrival, row, pk, columns) for row, pk in zip(batch, pks, strict=True)]
    into = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(part.model._meta.db_table),
        sql.SQL(", ").join(sql.Identifier(str(one.column)) for one in columns),
    )
    folder = folder_of(arrival.team.pk)
    with connection.cursor() as cursor, cursor.copy(into) as copy:
        for old, values in zip(batch, prepared, strict=True):
            if part.model is Artifact:
                values |= _file(arrival, folder, old)
            copy.write_row([values[column.attname] for column in columns])


def _row(part: Part, arrival: _Arrival, old: Row, pk: int | None, columns: Sequence[Any]) -> Row:
    row: Row = {}
    places = references(part)
    for column in columns:
        name = column.attname
        if name == "team_id":
            row[name] = arrival.team.pk
        elif isinstance(column, AutoField):
            row[name] = pk
        elif name not in old:
            row[name] = _default(column)
        elif old[name] is None:
            row[name] = None
        elif name in places:
            row[name] = _reference(part.model, places[name], name, old[name], pk, arrival)
        elif isinstance(column, ForeignKey):
            row[name] = _by_name(column, old[name], arrival)
        else:
            row[name] = old[name]
    arrive(part.model, row, pk, arrival.ids)
    return {column.attname: _stored(column, row[column.attname]) for column in columns}


def _reference(
    model: type[Model], to: type[Model], name: str, old: int, pk: int | None, arrival: _Arrival
) -> int | None:
    """The new id; None for now when the row that is meant comes later, and for good when it did not come along."""
    nullable = bool(next(one for one in model._meta.concrete_fields if one.attname == name).null)
    if nullable and (to is model or to not in arrival.ids):
        if pk is not None:
            arrival.later.setdefault((model, name, to), []).append((pk, old))
        return None
    found = arrival.ids[to].get(old)
    if found is None and not nullable:
        raise ArchiveError(f"A {model._meta.model_name} refers to a {to._meta.model_name} that is not in the archive.")
    return found


def _by_name(column: Any, value: Any, arrival: _Arrival) -> int:
    if column.related_model is CrontabSchedule:
        return _crontab(tuple(str(one) for one in value), arrival)
    return arrival.users[str(value)]


def _crontab(said: tuple[str, ...], arrival: _Arrival) -> int:
    if said not in arrival.crontabs:
        named = dict(zip((*CRONTAB, "timezone"), said, strict=True))
        try:
            arrival.crontabs[said] = crontab_of(" ".join(named[name] for name in FIELDS), named["timezone"]).pk
        except RequestError as error:
            raise ArchiveError(f"The archive has a timetable that never was one: {error.message}") from error
    return arrival.crontabs[said]


def _default(column: Field[Any, Any]) -> Any:
    if getattr(column, "auto_now", False) or getattr(column, "auto_now_add", False):
        return timezone.now()
    return column.get_default()


def _stored(column: Any, value: Any) -> Any:
    """The value as COPY takes it. ValueError for a word that the column does not know."""
    if column.choices and value not in (None, *dict(column.flatchoices)) and not (value == "" and column.blank):
        raise ValueError(f"{column.name} {value!r}")
    if isinstance(column, JSONField):
        return None if value is None and column.null else json.dumps(value)
    if isinstance(column, BinaryField) and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if isinstance(column, DateField) and isinstance(value, str):
        return column.to_python(value)
    return value


def _file(arrival: _Arrival, folder: str, row: Row) -> Row:
    """Where the content is now. What was put outside for an import that fails is swept up, as nothing names it."""
    name = str(row["name"])
    try:
        with content(arrival.archive, int(row["id"])) as stream:
            found = put(folder, stream, name=name, media_type=BINARY)  # its secrets were hidden when it was kept
    except RequestError as error:
        raise ArchiveError(f"{error.message} Nothing was stored.") from error
    if found.sha256 != row["sha256"]:
        raise ArchiveError(f"The file {name!r} of a run is not what it was: its checksum differs.")
    return {"content": found.content, "stored": found.stored, "stored_bytes": found.stored_bytes}


def _refer_back(arrival: _Arrival) -> None:
    """Set the references to rows that came later."""
    for (model, name, to), pairs in arrival.later.items():
        known = [(pk, arrival.ids[to][old]) for pk, old in pairs if old in arrival.ids[to]]
        statement = sql.SQL(
            "UPDATE {table} SET {column} = pair.other FROM unnest(%s::bigint[], %s::bigint[]) AS pair(id, other) "
            "WHERE {table}.id = pair.id"
        ).format(table=sql.Identifier(model._meta.db_table), column=sql.Identifier(name))
        with connection.cursor() as cursor:
            cursor.execute(statement, ([pk for pk, _ in known], [other for _, other in known]))
