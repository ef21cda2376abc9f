"""Files of runs as rows with their checksum; `file_store` has what they hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import IO

from experiments.models import Artifact, Run
from experiments.registry.runs.file_store import IN_ROW_BYTES, Content, folder_of, put


def artifact(
    run: Run, name: str, content: bytes | IO[bytes] | Content, *, media_type: str = "text/plain; charset=utf-8"
) -> Artifact:
    """A file of the run, a text without secrets; the caller stores it. RequestError when it is too large."""
    return Artifact(run=run, name=name, media_type=media_type, **asdict(_put(run, name, content, media_type)))


def keep(
    run: Run, name: str, content: bytes | IO[bytes] | Content, *, media_type: str = "text/plain; charset=utf-8"
) -> Artifact:
    """Store a file of the run under its name, a text without secrets; the same name again replaces it.

    What was put already (`Content`) is only named. FileStoreError when there is no place for it now.
    """
    fields = {"media_type": media_type, **asdict(_put(run, name, content, media_type))}
    kept, _ = Artifact.objects.update_or_create(run=run, name=name, defaults=fields)
    return kept


def _put(run: Run, name: str, content: bytes | IO[bytes] | Content, media_type: str) -> Content:
    if isinstance(content, Content):
        return content
    fits = isinstance(content, bytes) and len(content) <= IN_ROW_BYTES
    folder = "" if fits else folder_of(run.team_id)  # a batch of results asks nothing for each of its small files
    return put(folder, content, name=name, media_type=media_type)
