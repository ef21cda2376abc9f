"""Statements that come with nearly every request: PostgreSQL plans them once per connection, not each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, OperationalError, connection, connections
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import TimestamptzLoader
from pydantic_core import from_json

Values = Sequence[Any] | Mapping[str, Any]


class _JsonLoader(Loader):
    def load(self, data: Buffer) -> Any:
        return from_json(bytes(data))


def execute(statement: str, values: Values) -> list[tuple[Any, ...]]:
    """The rows that the statement returns. Values are sent apart from its text, so say their types: `%s::bigint`.

    Only the connections of the web process keep such a statement (`prepare_threshold` in the settings); Django's own
    cursor writes the values into the text, which is then another one each time.
    """
    try:
        return _planned(statement, values)
    except NotSupportedError as error:  # a migration changed the type of a column: the kept plans fit no more
        if connection.in_atomic_block:  # its end forgets them, so the next try has new ones
            raise OperationalError(str(error)) from error
        with connection.cursor() as cursor:
            cursor.execute("DEALLOCATE ALL")
        return _planned(statement, values)


def read(statement: str, values: Values) -> list[tuple[Any, ...]]:
    """The rows of a statement in Django's words; times and JSON are read in a fifth of the time that Django takes."""
    with connection.cursor() as cursor:
        cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
        cursor.adapters.register_loader("jsonb", _JsonLoader)
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def _planned(statement: str, values: Values) -> list[tuple[Any, ...]]:
    """As Django's cursor does it, in half of the time: its proxies and wrappers are passed by."""
    database = connections[DEFAULT_DB_ALIAS]
    database.ensure_connection()
    database.validate_no_broken_transaction()
    cursor: Any = psycopg.Cursor(database.connection)
    with database.wrap_database_errors:
        (database.make_debug_cursor(cursor) if database.queries_logged else cursor).execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
