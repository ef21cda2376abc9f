"""The file of a backup: a ZIP of the dump and of what it is, which comes last and so says that all of it is there."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

FORMAT = 1
DUMP, MANIFEST = "database.dump", "backup.json"
CHUNK_BYTES = 1 << 20
_MOST_MANIFEST_BYTES = 4 << 20


class BackupError(Exception):
    """A backup that cannot be made, read or restored; the message says why and what to do."""


class Manifest(BaseModel):
    """What a backup is. `key_check` and `secret_check`: made with the key file and SECRET_KEY of its installation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1]
    version: str
    taken_at: datetime
    migrations: tuple[str, ...]
    teams: int
    runs: int
    dump_bytes: int
    dump_sha256: str
    key_check: str
    secret_check: str


def read_manifest(file: Path) -> Manifest:
    """What the backup says of itself; BackupError when the file is none, or a part of one."""
    try:
        with zipfile.ZipFile(file) as archive:
            if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST_BYTES:
                raise BackupError(f"{file} is no backup: its {MANIFEST} is too large.")
            return Manifest.model_validate_json(archive.read(MANIFEST))
    except OSError as error:
        raise BackupError(f"{file} cannot be read: {error.strerror or error}.") from error
    except zipfile.BadZipFile as error:
        raise BackupError(f"{file} is no backup, or only a part of one: {error}.") from error
    except KeyError as error:
        raise BackupError(f"{file} is no backup: it has no {MANIFEST}.") from error
    except ValidationError as error:
        raise BackupError(f"{file} is a backup of another form than this version reads ({FORMAT}).") from error


@contextmanager
def opened_dump(file: Path) -> Iterator[IO[bytes]]:
    """The dump of the backup, to be read from its beginning. BackupError when it is not there."""
    with zipfile.ZipFile(file) as archive:
        try:
            stream = archive.open(DUMP)
        except KeyError as error:
            raise BackupError(f"{file} is no backup: it has no {DUMP}.") from error
        with stream:
            yield stream


def verify_dump(file: Path, manifest: Manifest) -> None:
    """BackupError unless the dump is byte for byte the one that was written. Reads all of it, in pieces."""
    digest, size = hashlib.sha256(), 0
    try:
        with opened_dump(file) as stream:
            while piece := stream.read(CHUNK_BYTES):
                digest.update(piece)
                size += len(piece)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise BackupError(f"{file} is damaged: {error}. Take another backup.") from error
    if (size, digest.hexdigest()) != (manifest.dump_bytes, manifest.dump_sha256):
        raise BackupError(f"{file} is damaged: its dump is not the one that was written. Take another backup.")
