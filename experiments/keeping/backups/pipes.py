"""`-` in the place of a backup's file: standard input and output, for a container whose disk nobody else sees."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from django.conf import settings

from experiments.keeping.backups.archive import CHUNK_BYTES, BackupError, Manifest
from experiments.keeping.backups.writing import write_to

PIPE = "-"


@contextmanager
def given_file(name: str) -> Iterator[Path]:
    """The backup of that name; with `-` the one that comes on standard input, kept in the data directory meanwhile.

    BackupError when it cannot be kept there.
    """
    if name != PIPE:
        yield Path(name).absolute()
        return
    with ExitStack() as open_files:
        try:
            kept = open_files.enter_context(
                tempfile.NamedTemporaryFile(dir=settings.BENCHHUB_DATA_DIR, prefix="standard-input.")
            )
            shutil.copyfileobj(sys.stdin.buffer, kept, CHUNK_BYTES)
            kept.flush()
        except OSError as error:
            raise BackupError(f"Standard input cannot be kept: {error.strerror or error}.") from error
        yield Path(kept.name)


def write_to_standard_output() -> Manifest:
    """Send a backup to standard output while it is made. BackupError when it cannot be made, or sent whole."""
    if sys.stdout.isatty():
        raise BackupError("A backup is no text for a terminal: send it to a file (backup - >benchhub.backup).")
    try:
        manifest = write_to(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise BackupError(f"Standard output does not take it: {error.strerror or error}.") from error
    return manifest
