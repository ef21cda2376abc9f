"""The one door to what the files of runs hold: up to 1 MB in their row, more outside of the database.

Each content that is put outside gets a name of its own: installation, team, SHA-256 and letters that nobody guesses. No
two rows share one, so whoever removes a row takes nobody else's content along, and no team's name leads to another's.
The content is there before the row that names it; a name that no row has is swept up later (`file_sweep`).
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, storages

from agents.base.redaction import Redactor, without_secrets
from experiments.models import Artifact, Installation
from experiments.registry.errors import Busy, NotFound, RequestError

logger = logging.getLogger(__name__)

IN_ROW_BYTES = 1 << 20
MAX_BYTES = 512 << 20
MAX_IN_DATABASE_BYTES = 16 << 20
"""Of a file, where there is no place outside: it is read and written whole there."""
TEXT_TYPES = ("text/", "application/json", "application/xml")
PART_BYTES = 1 << 20
_NAME = re.compile(r"[0-9]{1,19}/[0-9a-f]{64}-[0-9a-f]{32}")


class FileStoreError(Busy):
    """The place outside of the database cannot be reached, or does not take a file now."""


@dataclass(frozen=True)
class Content:
    """What a row keeps of a content: its sum, and either the bytes or the name and size of what is outside."""

    sha256: str
    content: bytes | None = None
    stored: str | None = None
    stored_bytes: int | None = None


def most_bytes() -> int:
    """The largest file of a run that can be kept here."""
    return MAX_BYTES if has_place() else MAX_IN_DATABASE_BYTES


def has_place() -> bool:
    """Whether there is a place outside of the database."""
    return "files" in settings.STORAGES


def own_folder() -> str:
    """Where this installation's files are; a copy of its database that was made another installation has its own."""
    return str(Installation.objects.get_or_create(only=True)[0].uuid)


def folder_of(team_id: int) -> str:
    """Where the team's files are."""
    return f"{own_folder()}/{team_id}"


def put(folder: str, source: bytes | IO[bytes], *, name: str, media_type: str) -> Content:
    """Store a content, a text without secrets, read in pieces from where `source` stands; the caller stores the row.

    It asks the database nothing. What cannot be put outside now goes into the row as well, up to 16 MB, and out of it
    later (`file_moving`). RequestError when it is larger than `most_bytes`, FileStoreError when it can go nowhere now.
    """
    is_text = media_type.startswith(TEXT_TYPES)
    if isinstance(source, bytes):
        if len(source) <= IN_ROW_BYTES:
            if is_text:  # any byte stays what it is
                source = without_secrets(source.decode("latin-1")).encode("latin-1")
            return Content(hashlib.sha256(source).hexdigest(), source)
        source = io.BytesIO(source)
    most = most_bytes()
    with _told(name), SpooledTemporaryFile(max_size=IN_ROW_BYTES, dir=_spool_dir()) as spool:
        digest = hashlib.sha256()
        for piece in _without_secrets(source) if is_text else iter(lambda: source.read(PART_BYTES), b""):
            digest.update(piece)
            spool.write(piece)
            if spool.tell() > most:
                raise RequestError(_too_large(name, most), field="file")
        size, sha256 = spool.tell(), digest.hexdigest()
        spool.seek(0)
        if size <= IN_ROW_BYTES or not has_place():
            return Content(sha256, spool.read())
        try:
            return Content(sha256, None, _save(folder, sha256, spool), size)
        except OSError as error:
            if size > MAX_IN_DATABASE_BYTES:
                raise
            logger.warning("%s of a run stays in the database for now: %s", name, error)
            spool.seek(0)
            return Content(sha256, spool.read())


def put_outside(folder: str, content: bytes, sha256: str) -> Content:
    """Put a content outside that is in a row now; the caller changes the row. FileStoreError."""
    with _told("A file"):
        return Content(sha256, None, _save(folder, sha256, io.BytesIO(content)), len(content))


def opened(artifact: Artifact) -> IO[bytes]:
    """The content, to be read from its beginning and closed. NotFound when it is lost, FileStoreError when away."""
    if artifact.stored is None:
        return io.BytesIO(bytes(artifact.content or b""))
    with _told(artifact.name):
        try:
            return cast("IO[bytes]", _storage().open(artifact.stored))
        except FileNotFoundError as error:
            logger.error("%s of a run is not where files are kept: %s", artifact.name, artifact.stored)
            raise NotFound(f"The content of {artifact.name} is not where files are kept any more.") from error


def whole(artifact: Artifact) -> bytes:
    """The content in memory: for files that are small by what they are. The same errors; RequestError above 16 MB."""
    if (artifact.stored_bytes or 0) > MAX_IN_DATABASE_BYTES:
        raise RequestError(_too_large(artifact.name, MAX_IN_DATABASE_BYTES), field="file")
    with opened(artifact) as stream, _told(artifact.name):
        return bytes(stream.read())


def link(artifact: Artifact, *, disposition: str, media_type: str) -> str | None:
    """An address where a browser gets the content for the next few minutes without asking us; None: there is none.

    Whoever calls this has checked that the person may read the file.
    """
    if artifact.stored is None or not hasattr(_storage(), "bucket") or not settings.BENCHHUB_BUCKET_LINKS:
        return None
    asked = {"ResponseContentDisposition": disposition, "ResponseContentType": media_type}
    return str(_storage().url(artifact.stored, parameters=asked))  # type: ignore[call-arg]  # of one that has links


def stored_names() -> Iterator[str]:
    """The names outside of the database that are this installation's; whatever else is there is not ours.

    FileStoreError.
    """
    folder = own_folder()
    for team in _listed(folder)[0]:
        names = (f"{team}/{name}" for name in _listed(f"{folder}/{team}")[1])
        yield from (f"{folder}/{name}" for name in names if _NAME.fullmatch(name))


def size_outside(artifact: Artifact) -> int | None:
    """How large the content is where it is outside; None: it is not there. FileStoreError."""
    with _told(artifact.name):
        try:
            return _storage().size(artifact.stored or "")
        except FileNotFoundError:
            return None


def remove(stored: str) -> None:
    """Delete what is outside under that name; it may be gone already. FileStoreError."""
    with _told(stored):
        _storage().delete(stored)


def look_at_place() -> str:
    """Write, read and delete something outside, and say where. FileStoreError when that cannot be done."""
    name = f"{own_folder()}/look-{secrets.token_hex(8)}"
    with _told("A file"):
        try:
            with _storage().open(_storage().save(name, File(io.BytesIO(b"look")))) as stream:
                if stream.read() != b"look":
                    raise OSError("what was written is not what is read")
        finally:
            _storage().delete(name)
    place = _storage()
    return f"bucket {place.bucket_name}" if hasattr(place, "bucket_name") else place.path("")


def _spool_dir() -> str | None:
    """Where a file is while it comes: a container's temporary directory may be memory."""
    place: Path = settings.BENCHHUB_DATA_DIR
    return str(place) if place.is_dir() else None


def _storage() -> Storage:
    return storages["files"]


def _listed(folder: str) -> tuple[list[str], list[str]]:
    """The directories and files in it."""
    with _told("The list of files"):
        try:
            return _storage().listdir(folder)
        except FileNotFoundError:
            return [], []


def _save(folder: str, sha256: str, stream: IO[bytes]) -> str:
    return _storage().save(f"{folder}/{sha256}-{secrets.token_hex(16)}", File(stream))


def _without_secrets(source: IO[bytes]) -> Iterator[bytes]:
    redactor = Redactor()
    while piece := source.read(PART_BYTES):
        yield redactor.feed(piece.decode("latin-1")).encode("latin-1")
    yield redactor.close().encode("latin-1")


def _too_large(name: str, most: int) -> str:
    said = f"{name} is larger than {most >> 20} MB"
    if most == MAX_BYTES or has_place():
        return f"{said}."
    return f"{said}: the database holds no larger ones. Set BENCHHUB_FILES_DIR or BENCHHUB_BUCKET for up to 512 MB."


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What a disk or a bucket says, as an error of ours; no path of it, which is nobody else's business."""
    try:
        yield
    except OSError as error:
        logger.warning("the place of files: %s", error)
        why = error.strerror or "it does not answer as it should"
        raise FileStoreError(f"{name}: the place of files cannot be used now ({why}).") from error
