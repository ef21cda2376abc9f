"""Writes a backup. BenchHub goes on working meanwhile: the dump is of one moment."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core import signing
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from experiments.keeping.backups.archive import CHUNK_BYTES, DUMP, FORMAT, MANIFEST, BackupError, Manifest
from experiments.keeping.backups.programs import environment, insist_on_a_client_for_the_server, program
from experiments.models import Run, Team
from experiments.registry.hosts.keys import seal

KEY_ROW, SECRET_SALT, CHECKED = "backup", "benchhub.backup", "benchhub"
"""What is sealed and signed, so that a restore can tell whether keys are those of the backup."""


def write_backup(file: Path) -> Manifest:
    """Write the whole database to `file`, which does not exist yet; only its owner may read it.

    Nothing is there under that name until all of it is on the disk. BackupError when it cannot be made.
    """
    if file.exists():
        raise BackupError(f"{file} is there already; give the backup another name.")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {error.strerror or error}.") from error
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            manifest = write_to(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(part, file)  # unlike a rename, never over a file that came meanwhile
    except FileExistsError as error:
        raise BackupError(f"{file} is there already; give the backup another name.") from error
    except OSError as error:
        raise BackupError(f"{file} cannot be written: {error.strerror or error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def write_to(stream: IO[bytes]) -> Manifest:
    """Write the whole database to `stream`, which need not be a file. BackupError when it cannot be made."""
    insist_on_a_client_for_the_server()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it says nothing while pg_dump works
            cursor.execute("SELECT pg_export_snapshot()")
            snapshot = cursor.fetchone()[0]
            facts = _facts()
            size, digest = _dump_into(archive, snapshot)
        manifest = Manifest.model_validate({**facts, "dump_bytes": size, "dump_sha256": digest})
        archive.writestr(MANIFEST, manifest.model_dump_json(indent=2))
    return manifest


def _dump_into(archive: zipfile.ZipFile, snapshot: str) -> tuple[int, str]:
    """Bytes and checksum of the dump of that moment. It is compressed already, so the archive only holds it."""
    digest, size = hashlib.sha256(), 0
    argv = [program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", "--schema=public"]
    argv.append(f"--snapshot={snapshot}")
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=said, env=environment()) as dumping,
        archive.open(DUMP, "w", force_zip64=True) as place,
    ):
        assert dumping.stdout is not None  # noqa: S101 - a pipe was asked for
        while piece := dumping.stdout.read(CHUNK_BYTES):
            digest.update(piece)
            size += len(piece)
            place.write(piece)
        if dumping.wait() != 0:
            said.seek(0)
            raise BackupError(f"pg_dump failed: {said.read(2000).decode('utf-8', 'replace').strip()}")
    return size, digest.hexdigest()


def _facts() -> dict[str, object]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        taken_at = cursor.fetchone()[0]
    applied = MigrationRecorder(connection).applied_migrations()
    return {
        "format": FORMAT,
        "version": settings.VERSION,
        "taken_at": taken_at,
        "migrations": tuple(sorted(f"{app}.{name}" for app, name in applied)),
        "teams": Team.objects.count(),
        "runs": Run.objects.count(),
        "key_check": seal(CHECKED, row=KEY_ROW).hex(),
        "secret_check": signing.dumps(CHECKED, salt=SECRET_SALT),
    }
