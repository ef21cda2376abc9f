"""Large files of runs leave the database, one by one: whoever stops amid it has lost nothing, and the next goes on."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator

from django.db.models import QuerySet
from django.db.models.functions import Length

from experiments.models import Artifact
from experiments.registry.runs.file_store import IN_ROW_BYTES, folder_of, has_place, put_outside

logger = logging.getLogger(__name__)

ROUND_S = 60.0
"""How long the hourly round goes on at most; the next one goes on from there."""
_BATCH = 100


def waiting_files() -> tuple[int, int]:
    """How many files and bytes are in the database that belong outside of it."""
    sizes = list(_in_database().values_list(Length("content"), flat=True))
    return len(sizes), sum(sizes)


def move_files(*, most_s: float = ROUND_S) -> int:
    """Move them outside for so many seconds; returns how many went. FileStoreError when the place does not take them.

    Each row is changed by a statement of its own once its content is outside, and only if it still has that content:
    nobody waits, and a file that was replaced or removed meanwhile stays so.
    """
    if not has_place():
        return 0
    end_s = time.monotonic() + most_s
    moved = 0
    for pk in _each():
        moved += _move(pk)
        if time.monotonic() > end_s:
            break
    return moved


def _each() -> Iterator[int]:
    last = 0
    while batch := list(_in_database().filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        yield from batch
        last = batch[-1]


def _in_database() -> QuerySet[Artifact]:
    """The length of a value is known without reading it."""
    return Artifact.objects.filter(stored=None).alias(size=Length("content")).filter(size__gt=IN_ROW_BYTES)


def _move(pk: int) -> bool:
    found = Artifact.objects.filter(pk=pk, stored=None).values_list("run__team_id", "sha256", "content").first()
    if found is None:
        return False
    team_id, sha256, content = found
    content = bytes(content or b"")
    if hashlib.sha256(content).hexdigest() != sha256:
        logger.error("artifact %s stays in the database: its content is not what its sum says", pk)
        return False
    there = put_outside(folder_of(team_id), content, sha256)
    unchanged = Artifact.objects.filter(pk=pk, stored=None, sha256=sha256)
    return bool(unchanged.update(content=None, stored=there.stored, stored_bytes=there.stored_bytes))
