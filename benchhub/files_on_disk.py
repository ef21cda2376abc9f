"""The files of runs in a directory: on the disk before their row says that they are there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.files.storage import FileSystemStorage


class FilesOnDisk(FileSystemStorage):
    """Django's own, and what was saved outlives a power failure: the row that names it does, too."""

    def __init__(self, location: str) -> None:
        super().__init__(location=location, file_permissions_mode=0o600, directory_permissions_mode=0o700)

    def _save(self, name: str, content: Any) -> str:
        try:
            saved: str = super()._save(name, content)  # type: ignore[misc]  # the stubs lack it
            file = Path(self.path(saved))
            for place in (file, *list(file.parents)[: len(Path(saved).parts)]):
                _flush(place)
        except BaseException:  # what a full disk took of it would stay; names are new, so it is nobody else's
            with suppress(OSError):
                Path(self.path(name)).unlink()
            raise
        return saved


def _flush(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
