"""Errors that a person or an API client is told in these words."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import InterfaceError, InternalError, OperationalError

DATABASE_AWAY = (OperationalError, InterfaceError, InternalError)
"""Nobody's mistake: what was under way is done again from its beginning.

The last one is what a worker hears that was frozen so long amid a transaction that PostgreSQL ended it (25P03).
"""


class RequestError(Exception):
    """The request cannot be done; `field` names what to change, when it is one field.

    `problems`: everything that is to be changed, each with its field and in words; empty where only one thing is known.
    """

    def __init__(self, message: str, *, field: str = "", problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.problems = tuple(problems)


class Forbidden(RequestError):
    """Seen, but not allowed."""


class NotFound(RequestError):
    """Does not exist, or belongs to another team: the same answer for both."""


class Busy(RequestError):
    """Too much of this is under way: the same request will do in a few seconds."""


class Conflict(RequestError):
    """The object is not in a state that allows this, or there is another one of its name."""
