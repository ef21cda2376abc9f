"""The one clock by which processes judge each other's times: the database's.

A process's own clock says nothing of a time that another one stored. Within a process, time that passes is measured by
its monotonic clock.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.db import connection

from agents.base.clock import RunClock, ahead_s


def database_now() -> datetime:
    """The database's time at this moment, also amid a transaction; as `Now()` in a query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now


def database_clock() -> RunClock:
    """The database's clock, for a run that is worked on from here."""
    return RunClock.read(lambda: database_now().timestamp())


def clock_ahead_s() -> float:
    """How far this process's clock is ahead of the database's for certain, negative when it is behind."""
    asked_s = time.time()
    database_s = database_now().timestamp()
    return 0.0 - ahead_s(database_s, asked_s, time.time())
