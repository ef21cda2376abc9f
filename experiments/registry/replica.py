"""The one place that decides what is read from a copy of the database, a streaming replica of PostgreSQL.

Only what is wrapped in `read_from_replica` is: histories and files of whole data, which read much and write nothing.
All else asks the primary. Nobody misses what was just written: the replica is asked only once it has all that the
primary had at that moment, which positions in PostgreSQL's log tell, and no clock. When that takes longer than
`BENCHHUB_REPLICA_LAG_MS`, or the replica is away, the primary answers, and the replica is left alone for `AWAY_S`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, connections

logger = logging.getLogger(__name__)

_WRITTEN = (
    "CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn() "
    "ELSE pg_current_wal_flush_lsn() END"
)
"""How far the primary is: where commits do not wait for the disk, what was committed may not be flushed yet."""
_REPLAYED = "pg_last_wal_replay_lsn()"
ALIAS, PRIMARY = "replica", "default"
AWAY_S = 5.0
LOOK_AGAIN_S = 0.005
_TOO_SLOW = "57014"  # query_canceled: the primary would take as long
_reading: ContextVar[bool] = ContextVar("reading from the replica", default=False)
Found = TypeVar("Found")


@dataclass(frozen=True)
class ReplicaState:
    """What a look at the replica found. `behind_bytes` of PostgreSQL's log are missing there; None: it is away.

    `trouble`: why the primary answers in its place; "" = the replica is read.
    """

    behind_bytes: int | None
    trouble: str

    @property
    def sentence(self) -> str:
        """For an operator, in plain words."""
        if self.trouble:
            return f"Histories and whole files are read from the primary: {self.trouble}."
        return "Histories and whole files are read from the replica, which has all that the primary has."


class Router:
    """Reads within `read_from_replica` go there, all else to the primary, also what an object of the replica asks."""

    def db_for_read(self, model: type, **_hints: Any) -> str:
        return ALIAS if _reading.get() else PRIMARY

    def db_for_write(self, model: type, **_hints: Any) -> str:
        return PRIMARY

    def allow_relation(self, one: object, other: object, **_hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool:
        return db == PRIMARY


def read_from_replica(ask: Callable[[], Found]) -> Found:
    """What `ask` returns, read from the replica when there is one that is fit, else from the primary.

    `ask` may be called a second time, for the replica may go away amid the answer; it must write nothing, and return
    no query that is still to be asked.
    """
    if not has_replica() or connection.in_atomic_block or time.monotonic() < _Away.until_s:
        return ask()
    if trouble := _look(settings.BENCHHUB_REPLICA_LAG_MS / 1000).trouble:
        _leave_alone(trouble)
        return ask()
    token = _reading.set(True)
    try:
        return ask()
    except (OperationalError, InterfaceError) as error:
        if getattr(error.__cause__, "sqlstate", "") == _TOO_SLOW:
            raise
        connections[ALIAS].close()
        _leave_alone(_first_line(error))
    finally:
        _reading.reset(token)
    return ask()


def has_replica() -> bool:
    return ALIAS in settings.DATABASES


def replica_state() -> ReplicaState | None:
    """Look at the replica now; None when the installation has none."""
    return _look(settings.BENCHHUB_REPLICA_LAG_MS / 1000) if has_replica() else None


class _Away:
    """Until when this process leaves the replica alone, by its monotonic clock."""

    until_s = float("-inf")


def _leave_alone(trouble: str) -> None:
    _Away.until_s = time.monotonic() + AWAY_S
    logger.warning("the replica is not read: %s", trouble)


def _look(limit_s: float) -> ReplicaState:
    """Wait, for so long at most, until the replica has what the primary has now."""
    wanted, ends_s = _position(PRIMARY, _WRITTEN), time.monotonic() + limit_s
    try:
        while True:
            there = _position(ALIAS, _REPLAYED)
            if there is None:
                return ReplicaState(None, "DATABASE_REPLICA_URL leads to a server that is no replica")
            if there >= (wanted or 0):
                return ReplicaState(0, "")
            if time.monotonic() >= ends_s:
                behind = (wanted or 0) - there
                return ReplicaState(behind, f"the replica is more than {limit_s * 1000:.0f} ms behind, {behind} bytes")
            time.sleep(LOOK_AGAIN_S)
    except (OperationalError, InterfaceError) as error:
        connections[ALIAS].close()
        return ReplicaState(None, f"the replica does not answer: {_first_line(error)}")


def _position(alias: str, function: str) -> int | None:
    """A position in PostgreSQL's log, in bytes from its beginning; None when the server is not what was said."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            f"SELECT CASE WHEN pg_is_in_recovery() = %s THEN ({function} - '0/0')::bigint END", [alias == ALIAS]
        )
        position: int | None = cursor.fetchone()[0]
    return position


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
