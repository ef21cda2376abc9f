"""Connections to PostgreSQL that the threads of a process share, and how long they wait for a server that hangs."""

from __future__ import annotations

import time
from typing import Any

import psycopg

ANSWER_S = 20.0
"""More than the statement timeout: the server's own answer comes first when the server is alive."""
CHECK_S = 3.0
FRESH_S = 0.5
"""A connection that has answered within this time is not asked whether it still works."""


class PooledConnection(psycopg.Connection[Any]):
    """Looks whether it still works before it is lent, and gives itself up when the server says nothing to that.

    A worker's statement may take longer than anybody waits for a page: only the look is bounded.
    """

    _limit_s: float | None = None
    _answered_s = float("-inf")

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        limit_s = self._limit_s if timeout is None else timeout
        try:
            found = super().wait(gen, interval, limit_s)
            self._answered_s = time.monotonic()
            return found
        except psycopg.errors._WaitTimeout as error:
            self.pgconn.finish()  # whatever the server still says belongs to a question that nobody waits for
            raise psycopg.OperationalError(f"PostgreSQL said nothing for {limit_s:g} s.") from error

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Only the pool calls this, to see whether a connection still works before it lends it."""
        if time.monotonic() - self._answered_s < FRESH_S:
            return None
        self._limit_s = CHECK_S
        try:
            return super().execute(*args, **kwargs)
        finally:
            del self._limit_s


class BoundedConnection(PooledConnection):
    """That of the web, which does not wait for ever for any answer (a frozen server, a network that swallows)."""

    _limit_s = ANSWER_S
