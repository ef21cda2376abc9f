"""Puts a backup back: the database as it was then and nothing of what is there now, in one transaction."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from django.core import signing
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from experiments.keeping.backups.archive import (
    CHUNK_BYTES,
    BackupError,
    Manifest,
    opened_dump,
    read_manifest,
    verify_dump,
)
from experiments.keeping.backups.programs import environment, program
from experiments.keeping.backups.writing import KEY_ROW, SECRET_SALT
from experiments.registry.hosts.keys import KeyFileError, unseal

# The schema goes as a whole, and the dump makes it anew: what a later version has added would stay beside its tables.
_EMPTY = b"SET client_min_messages = error;\nBEGIN;\nDROP SCHEMA public CASCADE;\n"


def verify_backup(file: Path, *, without_keys: bool = False) -> Manifest:
    """The backup is whole, of a version that this one can read, and its secrets open with the keys that are here.

    BackupError says which of these is not so. `without_keys`: the keys are not looked at.
    """
    manifest = read_manifest(file)
    verify_dump(file, manifest)
    _insist_on_known_migrations(file, manifest)
    if not without_keys:
        _insist_on_keys(file, manifest)
    _insist_on_a_readable_dump(file)
    return manifest


def restore_backup(file: Path, *, replace: bool = False, without_keys: bool = False) -> Manifest:
    """Put the backup in the place of what the database holds, and bring it to this version.

    BackupError, and nothing was changed: when `verify_backup` finds fault, while other processes use the database, or
    when it holds tables already and `replace` is not said. The restore itself happens whole or not at all.
    """
    manifest = verify_backup(file, without_keys=without_keys)
    if tables := connection.introspection.table_names():
        if not replace:
            raise BackupError(
                f"The database has {len(tables)} tables already; --replace puts the backup in their place."
            )
        _insist_on_nobody_else()
    connection.close()
    _restore(file)
    call_command("migrate", interactive=False, verbosity=0)
    return manifest


def _insist_on_known_migrations(file: Path, manifest: Manifest) -> None:
    known = {f"{app}.{name}" for app, name in MigrationLoader(connection).disk_migrations or {}}
    if unknown := sorted(set(manifest.migrations) - known):
        raise BackupError(
            f"{file} is of BenchHub {manifest.version}, which is later than this one: {unknown[-1]} is not known "
            "here. Install that version or a later one, then restore."
        )


def _insist_on_keys(file: Path, manifest: Manifest) -> None:
    try:
        unseal(bytes.fromhex(manifest.key_check), row=KEY_ROW)
    except (KeyFileError, ValueError) as error:
        raise BackupError(
            f"The key file here does not open the secrets in {file}. Put the key file that was kept with it in its "
            "place (BENCHHUB_KEY_FILE), or say --without-keys: then each host needs a new key."
        ) from error
    try:
        signing.loads(manifest.secret_check, salt=SECRET_SALT)
    except signing.BadSignature as error:
        raise BackupError(
            f"SECRET_KEY is another one than that of {file}. Put it back (on one machine: the file secret_key), or say "
            "--without-keys: then everybody signs in anew and no token works any more."
        ) from error


def _insist_on_a_readable_dump(file: Path) -> None:
    """pg_restore understands its table of contents: a dump of a later PostgreSQL may be whole and of no use here."""
    with opened_dump(file) as stream, tempfile.TemporaryFile() as said:
        argv = [program("pg_restore"), "--list"]
        listing = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        with listing:
            _pour(stream, listing.stdin)
        if listing.returncode != 0:
            raise BackupError(f"{file} cannot be read by pg_restore: {_said(said)}")


def _insist_on_nobody_else() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), string_agg(DISTINCT NULLIF(application_name, ''), ', ') FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        others, names = cursor.fetchone()
    if others:
        who = f" ({names})" if names else ""
        raise BackupError(
            f"{others} other connection{'s' if others > 1 else ''} use the database{who}. Stop BenchHub (pages, "
            "workers and beat) first; the database itself goes on running."
        )


def _restore(file: Path) -> None:
    """pg_restore writes SQL, psql does it; COMMIT is sent only when pg_restore has ended well."""
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as said:
        argv = [program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, env=environment()
        ) as doing:
            assert doing.stdin is not None  # noqa: S101 - a pipe was asked for
            try:
                doing.stdin.write(_EMPTY)
                doing.stdin.flush()
                written = _write_sql(file, doing.stdin, told)
                if written == 0:
                    doing.stdin.write(b"COMMIT;\n")
            except BrokenPipeError:
                written = 0  # psql has ended, and its own words say why
        if doing.returncode != 0:
            raise BackupError(f"The restore failed, and nothing was changed: {_said(said)}")
        if written != 0:
            raise BackupError(f"The restore failed, and nothing was changed: {_said(told)}")


def _write_sql(file: Path, place: IO[bytes], told: IO[bytes]) -> int:
    argv = [program("pg_restore"), "--no-owner", "--no-privileges", "--file=-"]
    with opened_dump(file) as stream:
        writing = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=place, stderr=told)
        with writing:
            _pour(stream, writing.stdin)
    return writing.returncode


def _pour(stream: IO[bytes], place: IO[bytes] | None) -> None:
    assert place is not None  # noqa: S101 - a pipe was asked for
    try:
        shutil.copyfileobj(stream, place, CHUNK_BYTES)
        place.close()
    except BrokenPipeError:
        return  # it has read enough, or its exit status says why it has not


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(2000).decode("utf-8", "replace").strip() or "no reason was given."
