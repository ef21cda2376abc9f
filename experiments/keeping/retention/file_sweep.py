"""What is outside of the database and belongs to no file of a run any more goes, after a while.

A row is removed, or never stored because its transaction failed; its content stays and is swept up here. It is seen
first and removed only days later, so that a backup of the database that is still kept finds each of its files.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import islice

from django.conf import settings

from experiments.keeping.retention.batches import while_there_is_time
from experiments.models import Artifact, UnusedFile
from experiments.registry.database_clock import database_now
from experiments.registry.runs.file_store import has_place, remove, stored_names

LEAST_DAYS = 7
BATCH = 500
"""Files that are looked up, or removed, at once."""


def kept_days() -> int:
    """For how many days a content stays that no row names: longer than the daily backups do."""
    return max(LEAST_DAYS, settings.BENCHHUB_BACKUPS_KEPT) + 1


def sweep_files() -> int:
    """Note what no row names now, forget what one names again, remove what was noted long ago; returns how many went.

    It removes for as long as a round goes on, and the next round takes the next ones. FileStoreError when the place
    does not answer.
    """
    if not has_place():
        return 0
    now = database_now()
    there = stored_names()
    while names := set(islice(there, BATCH)):
        unused = names - _named(names)
        UnusedFile.objects.filter(stored__in=names - unused).delete()
        UnusedFile.objects.bulk_create(
            (UnusedFile(stored=name, seen_at=now) for name in sorted(unused)), ignore_conflicts=True
        )
    due = UnusedFile.objects.filter(seen_at__lt=now - timedelta(days=kept_days())).order_by("seen_at", "pk")
    removed = 0
    for _ in while_there_is_time():
        leaving = list(due.values_list("stored", flat=True)[:BATCH])
        removed += sum(map(_remove, leaving))
        if len(leaving) < BATCH:
            break
    return removed


def _named(names: Iterable[str]) -> set[str]:
    return {name for name in Artifact.objects.filter(stored__in=names).values_list("stored", flat=True) if name}


def _remove(name: str) -> bool:
    """A name is given once, so what is not in use after days is never used again; a look costs nothing all the same."""
    used = Artifact.objects.filter(stored=name).exists()
    if not used:
        remove(name)
    UnusedFile.objects.filter(stored=name).delete()
    return not used
