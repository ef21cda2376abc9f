"""The file: a ZIP archive of known names and bounded size; JSON lines for rows, one entry for each file of a run."""

from __future__ import annotations

import json
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FORMAT = 1
MAX_ENTRIES = 1_000_000
MAX_BYTES = 200 << 30
MAX_LINE_BYTES = 64 << 20
MAX_RATIO = 400.0
"""Rows repeat each other a lot: a team's runs were packed 60 times smaller. A bomb is 1000 times smaller."""

MANIFEST = "manifest.json"
_NAMES = re.compile(r"manifest\.json|[a-z_]{1,60}\.jsonl|artifacts/[0-9]{1,19}")
_SMALL_BYTES = 1 << 20


class ArchiveError(Exception):
    """The file is no archive of a team, or not one that may be read; the message says why."""


class Manifest(BaseModel):
    """What is in the archive."""

    model_config = ConfigDict(extra="forbid")

    format: int
    benchhub: str
    made_at: str
    team: dict[str, Any]
    rows: dict[str, int] = Field(description="Rows by part")


def artifact_name(pk: int) -> str:
    return f"artifacts/{pk}"


def lines_name(part: str) -> str:
    return f"{part}.jsonl"


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, checked before anything in it is read. ArchiveError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check(archive)
            yield archive
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise ArchiveError(f"{path} is damaged or no archive of a team: {error}.") from error


def manifest_of(archive: zipfile.ZipFile) -> Manifest:
    try:
        with archive.open(MANIFEST) as stream:
            manifest = Manifest.model_validate_json(stream.read(_SMALL_BYTES))
    except (KeyError, ValidationError) as error:
        raise ArchiveError("The archive has no manifest that BenchHub can read.") from error
    if manifest.format != FORMAT:
        raise ArchiveError(f"The archive has format {manifest.format}; this BenchHub reads format {FORMAT}.")
    return manifest


def lines(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of one part with their sizes in bytes, one at a time; nothing when the archive has no such part."""
    name = lines_name(part)
    if name not in archive.namelist():
        return
    with archive.open(name) as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                raise ArchiveError(f"A row of {name} is larger than {MAX_LINE_BYTES >> 20} MB.")
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ArchiveError(f"A row of {name} is no JSON.") from error
            if not isinstance(row, dict):
                raise ArchiveError(f"A row of {name} is no object.")
            yield row, len(line)


def content(archive: zipfile.ZipFile, pk: int) -> IO[bytes]:
    """What a file of a run holds, to be read piece by piece and closed."""
    try:
        return archive.open(artifact_name(pk))
    except KeyError as error:
        raise ArchiveError(f"The archive lacks {artifact_name(pk)}.") from error


def writer(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    return archive.open(name, "w", force_zip64=True)


def _check(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise ArchiveError(f"The archive has {len(entries):,} entries; at most {MAX_ENTRIES:,} are read.")
    if len({entry.filename for entry in entries}) != len(entries):
        raise ArchiveError("The archive has two entries of one name.")
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if not _NAMES.fullmatch(entry.filename) or kind not in (0, stat.S_IFREG) or entry.flag_bits & 1:
            raise ArchiveError(f"The archive has an entry that no team has: {entry.filename[:100]!r}.")
        if entry.file_size > _SMALL_BYTES and entry.file_size > MAX_RATIO * max(1, entry.compress_size):
            raise ArchiveError(f"{entry.filename} is packed more than {MAX_RATIO:.0f} times smaller: a bomb.")
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise ArchiveError(f"The archive holds more than {MAX_BYTES >> 30} GB.")
