"""Connections to PostgreSQL that the threads of a worker share: a run waits most of the time, and needs none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import connection

P = ParamSpec("P")
T = TypeVar("T")


def lent(action: Callable[P, T]) -> Callable[P, T]:
    """The action with a connection that goes back to the process's pool when it is done.

    Without a pool (`DATABASE_POOL_SIZE` 0) the thread keeps its connection: a new one for each action costs more.
    """

    @functools.wraps(action)
    def borrowing(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return action(*args, **kwargs)
        finally:
            give_back()

    return borrowing


def give_back() -> None:
    """Let another thread have this one's connection; inside a transaction it stays."""
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()
