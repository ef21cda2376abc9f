"""A backup a day into a directory of the operator's choice; the older ones go."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

from django.conf import settings
from django.db import connection

from experiments.keeping.backups.archive import BackupError
from experiments.keeping.backups.writing import write_backup
from experiments.registry.database_clock import database_now

logger = logging.getLogger(__name__)

_LOCK = 0x4261636B  # "Back"
_NAME = re.compile(r"benchhub-(\d{4}-\d{2}-\d{2})\.backup")


@dataclass(frozen=True)
class Daily:
    """The backups of the directory: the newest one's day ("" = there is none) and size, and how many there are."""

    newest: str
    newest_bytes: int
    count: int


def back_up_daily() -> Path | None:
    """Write today's backup (UTC, the database's clock) unless it is there, and delete those beyond the number to keep.

    None when there was nothing to do. A backup that fails deletes none and is tried again at the next tick.
    """
    if settings.BENCHHUB_BACKUP_DIR is None:
        return None
    file = settings.BENCHHUB_BACKUP_DIR / f"benchhub-{database_now().astimezone(UTC):%Y-%m-%d}.backup"
    if file.exists():
        return None
    with _alone() as alone:
        if not alone:
            return None
        try:
            write_backup(file)
        except BackupError as error:
            logger.error("no backup of today: %s", error)
            return None
        for old in _files(settings.BENCHHUB_BACKUP_DIR)[: -settings.BENCHHUB_BACKUPS_KEPT]:
            old.unlink(missing_ok=True)
    return Path(file)


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether no other worker is writing one: a large database takes longer than the time between two ticks."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        (alone,) = cursor.fetchone()
        try:
            yield alone
        finally:
            if alone:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])


def daily_backups() -> Daily | None:
    """What the operator's page says of them; None where no directory is set."""
    if settings.BENCHHUB_BACKUP_DIR is None:
        return None
    files = _files(settings.BENCHHUB_BACKUP_DIR)
    if not files:
        return Daily("", 0, 0)
    return Daily(files[-1].name.removeprefix("benchhub-").removesuffix(".backup"), files[-1].stat().st_size, len(files))


def _files(directory: Path) -> list[Path]:
    """The oldest first."""
    found = directory.glob("benchhub-*.backup")
    return sorted(file for file in found if _NAME.fullmatch(file.name))
