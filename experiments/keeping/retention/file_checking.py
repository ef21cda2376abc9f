"""Whether each content that rows name outside of the database is there, and is what it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from experiments.models import Artifact
from experiments.registry.errors import NotFound
from experiments.registry.runs.file_store import PART_BYTES, opened, size_outside


def lost_files(*, read: bool) -> Iterator[str]:
    """Each file whose content is not as its row says, in words; `read`: its sum is compared, too. FileStoreError."""
    found = Artifact.objects.exclude(stored=None).select_related("run__team").defer("content", "run__spec")
    for file in found.order_by("run__team", "run__number", "name").iterator(chunk_size=200):
        if why := _why(file, read=read):
            yield f"team {file.run.team.slug}, run #{file.run.number}, {file.name}: {why} ({file.stored})"


def _why(file: Artifact, *, read: bool) -> str:
    size = size_outside(file)
    if size is None:
        return "not there"
    if size != file.stored_bytes:
        return f"has {size:,} bytes, not {file.stored_bytes:,}"
    if not read:
        return ""
    digest = hashlib.sha256()
    try:
        with opened(file) as stream:
            while piece := stream.read(PART_BYTES):
                digest.update(piece)
    except NotFound:
        return "not there"
    return "" if digest.hexdigest() == file.sha256 else "another content than it was: its checksum differs"
