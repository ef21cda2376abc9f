"""Several files in one upload: one import, all of it or nothing."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from agents.readers.base.figure_kinds import Direction
from experiments.asking.intake.imports import AUTO, IMPORT, MAX_REPORT_CHARS, Preview, import_reports, preview_of
from experiments.models import Member, Run
from experiments.registry.errors import RequestError

MAX_FILES = 50


@dataclass(frozen=True)
class ImportFile:
    """One of the files; `kind` is a tool, a form of its files, or `auto`."""

    name: str
    text: str
    kind: str = AUTO


def import_files(
    member: Member,
    files: Sequence[ImportFile],
    *,
    labels: Mapping[str, str] | None = None,
    application: str = "",
    recipe: str = "",
    workload: str = "",
    measured_at: datetime | None = None,
    machine: str = "",
    split: bool = False,
    directions: Mapping[str, Direction] | None = None,
) -> list[Run]:
    """Store what all files hold as `import_reports` does with one; their runs have the label `import` in common.

    RequestError as there, with the file's name before what is wrong; then nothing of any of them is stored.
    """
    _check(files)
    shared = {IMPORT: secrets.token_hex(6), **(labels or {})}
    runs: list[Run] = []
    with transaction.atomic():
        for file in files:
            try:
                runs += import_reports(
                    member,
                    kind=file.kind,
                    text=file.text,
                    file_name=file.name,
                    labels=shared,
                    application=application,
                    recipe=recipe,
                    workload=workload,
                    measured_at=measured_at,
                    machine=machine,
                    split=split,
                    directions=directions,
                )
            except RequestError as error:
                raise _of(file, error) from error
    return runs


def previews_of(files: Sequence[ImportFile], directions: Mapping[str, Direction]) -> list[Preview]:
    """What each of the files would become; RequestError names the first that cannot be known by its content."""
    _check(files)
    found = []
    for file in files:
        try:
            found.append(preview_of(file.text, file.name, directions))
        except RequestError as error:
            raise _of(file, error) from error
    return found


def _check(files: Sequence[ImportFile]) -> None:
    if not files:
        raise RequestError("Choose a file.", field="file")
    if len(files) > MAX_FILES:
        raise RequestError(f"{len(files)} files are too many; at most {MAX_FILES} in one upload.", field="file")
    if (total := sum(len(file.text) for file in files)) > MAX_REPORT_CHARS:
        raise RequestError(
            f"The files have {total:,} characters together; at most {MAX_REPORT_CHARS:,} in one upload.", field="file"
        )


def _of(file: ImportFile, error: RequestError) -> RequestError:
    return RequestError(
        f"{file.name[:100] or 'A file'}: {error.message}", field="file" if error.field == "text" else error.field
    )
