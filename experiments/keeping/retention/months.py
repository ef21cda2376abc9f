"""Events and samples are kept in months: parts of their tables, each of which can be dropped as a whole.

A row finds its month by the id of its run. Every query asks by run and so looks into one part, and no clock decides
whether a row can be stored: months have room for `RUNS_OF_A_MONTH` ids each, and one begins by raising the sequence of
ids to where its room begins. While nobody begins one, runs go on in the one before. A part is made beside its table and
attached, which stops neither readers nor writers; SQL, because Django makes no parts of tables.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg import sql

from experiments.models import Run, RunEvent, SampleSeries
from experiments.registry.database_clock import database_now

logger = logging.getLogger(__name__)

RUNS_OF_A_MONTH = 1_000_000_000
TABLES = (RunEvent._meta.db_table, SampleSeries._meta.db_table)
LOCK_MS = 500
"""Longest wait for a lock that others would queue behind; less than PostgreSQL takes to see a deadlock (1 s)."""
_LOCK = 7_221_018
"""Of those who change parts; any number that no other lock has."""
_LOCKED = ("55P03", "40P01")  # lock_not_available, deadlock_detected
_NAME = re.compile(rf"{TABLES[0]}_(\d+)(?:_(\d{{4}})_(\d{{2}}))?")


@dataclass(frozen=True)
class Month:
    """A part of each table. `called` is the month in which it began, 2026-11; "" is all that was before there were any.

    Two may be called alike, where a clock was set back; `number` tells them apart, and later ones have greater ones.
    """

    number: int
    called: str = ""

    @property
    def first_id(self) -> int:
        """The least id of its runs."""
        return self.number * RUNS_OF_A_MONTH

    @property
    def end_id(self) -> int:
        """The id behind the greatest that its runs may have."""
        return self.first_id + RUNS_OF_A_MONTH

    def part(self, table: str) -> str:
        """The name of its part of a table."""
        return f"{table}_{self.number}" + (f"_{self.called.replace('-', '_')}" if self.called else "")


def months() -> list[Month]:
    """All that there are, the oldest first; runs of today go into the last one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = %s::regclass",
            [TABLES[0]],
        )
        names = [row[0] for row in cursor.fetchall()]
    found = [_NAME.fullmatch(name) for name in names]
    known = [Month(int(one[1]), f"{one[2]}-{one[3]}" if one[2] else "") for one in found if one]
    return sorted(known, key=lambda month: month.number)


def begin_month() -> Month | None:
    """Make the part of this month when the newest is of another, and let runs go there; None when nothing was to do.

    May be called any time and by several at once; what was interrupted goes on.
    """
    called = f"{database_now():%Y-%m}"
    begun: list[Month] = []

    def make(cursor: Any) -> None:
        newest = months()[-1]
        if newest.called != called:
            begun.append(Month(newest.number + 1, called))
            for table in TABLES:
                make_part(cursor, table, begun[0].part(table))
                attach(cursor, table, begun[0])

    if not if_free(make):
        return None
    # Behind the commit: a sequence is raised at once, and no run may get an id for which there is no part yet.
    transaction.on_commit(lambda: _raise_ids(months()[-1]))
    if not begun:
        return None
    logger.info("a new month of events and samples: %s", called)
    return begun[0]


def if_free(act: Callable[[Any], None]) -> bool:
    """Do it with a cursor in a transaction, one of these at a time, that waits for no lock for long.

    False, and nothing was done, when somebody holds one: the next round may try again.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{LOCK_MS}ms"])
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            act(cursor)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") not in _LOCKED:
            raise
        logger.info("tables of events and samples are in use; the next round tries again")
        return False
    return True


def make_part(cursor: Any, table: str, name: str) -> None:
    """A table beside `table` with its columns and constraints, which is no part of it yet."""
    cursor.execute(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")


def attach(cursor: Any, table: str, month: Month) -> None:
    """Make the table that has the month's name its part."""
    first = "MINVALUE" if month.number == 0 else month.first_id
    cursor.execute(
        f"ALTER TABLE {table} ATTACH PARTITION {month.part(table)} FOR VALUES FROM ({first}) TO ({month.end_id})"
    )


def _raise_ids(month: Month) -> None:
    """Let the ids of runs go on in the month, never back: fewer are given meanwhile than a month has room for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [Run._meta.db_table])
        sequence = cursor.fetchone()[0]
        schema, name = sequence.split(".")
        raised = sql.SQL("SELECT setval(%s, %s, false) FROM {} WHERE last_value < %s")
        cursor.execute(raised.format(sql.Identifier(schema, name)), [sequence, month.first_id, month.first_id])
