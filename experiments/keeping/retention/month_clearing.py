"""Rows of runs that are gone for good go with their month: its parts are dropped, not emptied row by row.

Whoever removes a run leaves its events and samples behind. No page and no query finds them, as all ask by run. Once no
run of a month is left, its parts are dropped. When a few are left, which somebody pinned, tagged or shared, their rows
are copied into new parts and the old ones dropped. Only when more stay than went, the rows that went are deleted one
batch after the other. Nothing waits long for any of it: who does not get a lock at once tries again an hour later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models import Q
from psycopg import sql

from experiments.keeping.retention.months import TABLES, Month, attach, if_free, make_part, months
from experiments.models import Run, RunEvent, SampleSeries
from experiments.registry.database_clock import database_now

logger = logging.getLogger(__name__)

OPEN = 2
"""The newest months, which are never dropped: a run that is being stored may still get an id of the last but one."""
BATCH, MOST_BATCHES = 50, 20


def clear_months() -> int:
    """Drop the months of which no run is left, and look for what is left of runs in one of the others.

    Returns the number of parts that were dropped. Another month is looked at each hour, so that a look into all of
    them, which reads the ids of all their runs, is spread over days.
    """
    closed = months()[:-OPEN]
    empty = [month for month in closed if not Run.objects.filter(_runs_of(month)).exists()]
    dropped = sum(_dropped(_drop, month) for month in empty)
    if others := [month for month in closed if month not in empty]:
        dropped += clear(others[int(database_now().timestamp() // 3600) % len(others)])
    return dropped


def clear(month: Month) -> int:
    """Remove the rows of runs that are gone; returns how many parts were dropped for it.

    Nothing happens while more runs of the month are in the trash than stay: soon they can go as a whole.
    """
    runs = Run.objects.filter(_runs_of(month))
    leaving = runs.filter(trashed_at__isnull=False).count()
    staying = runs.filter(trashed_at=None).count()
    if leaving > staying:
        return 0
    gone = sorted({run for table in TABLES for run in _gone(month.part(table))})
    if leaving + staying <= len(gone):
        return _dropped(_rewrite, month)
    for start in range(0, min(len(gone), BATCH * MOST_BATCHES), BATCH):
        _delete_rows(gone[start : start + BATCH])
    return 0


def _runs_of(month: Month) -> Q:
    return Q(pk__gte=month.first_id, pk__lt=month.end_id)


def _gone(part: str) -> list[int]:
    """Ids of runs that have rows in a part and are not there: a look into the index for each run, not for each row."""
    statement = sql.SQL(
        "WITH RECURSIVE one(run_id) AS (SELECT min(run_id) FROM {part} UNION ALL "
        "SELECT (SELECT min(run_id) FROM {part} WHERE run_id > one.run_id) FROM one WHERE run_id IS NOT NULL) "
        "SELECT run_id FROM one WHERE run_id IS NOT NULL AND NOT EXISTS (SELECT FROM {runs} AS run WHERE id = run_id)"
    ).format(part=sql.Identifier(part), runs=sql.Identifier(Run._meta.db_table))
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [row[0] for row in cursor.fetchall()]


def _dropped(act: Callable[[Any, Month], None], month: Month) -> int:
    if not if_free(lambda cursor: act(cursor, month)):
        return 0
    logger.info("dropped what was gone of the month %s of events and samples", month.called or "0")
    return len(TABLES)


def _drop(cursor: Any, month: Month) -> None:
    for table in TABLES:
        cursor.execute(f"DROP TABLE {month.part(table)}")


def _rewrite(cursor: Any, month: Month) -> None:
    """Put new parts with the rows of runs that are there into the places of the old ones."""
    for model in (RunEvent, SampleSeries):
        table, part = model._meta.db_table, month.part(model._meta.db_table)
        columns = sql.SQL(", ").join(sql.Identifier(str(field.column)) for field in model._meta.concrete_fields)
        cursor.execute(f"LOCK TABLE {part} IN SHARE MODE")  # readers go on; a run that is put back writes to it later
        make_part(cursor, table, f"{part}_new")
        # Known before it is attached, so that nobody waits for a look at each row.
        cursor.execute(
            f"ALTER TABLE {part}_new ADD CONSTRAINT {part}_room "
            f"CHECK (run_id >= {month.first_id} AND run_id < {month.end_id})"
        )
        copy = (
            "INSERT INTO {new} ({columns}) SELECT {columns} FROM {part} "
            "WHERE EXISTS (SELECT FROM {runs} WHERE id = run_id)"
        )
        names = {"new": f"{part}_new", "part": part, "runs": Run._meta.db_table}
        cursor.execute(
            sql.SQL(copy).format(columns=columns, **{key: sql.Identifier(name) for key, name in names.items()})
        )
    for table in TABLES:
        part = month.part(table)
        cursor.execute(f"DROP TABLE {part}")
        cursor.execute(f"ALTER TABLE {part}_new RENAME TO {part}")
        attach(cursor, table, month)
        cursor.execute(f"ALTER TABLE {part} DROP CONSTRAINT {part}_room")


def _delete_rows(runs: Sequence[int]) -> None:
    with transaction.atomic():
        for model in (RunEvent, SampleSeries):
            model._default_manager.filter(run_id__in=runs).delete()
