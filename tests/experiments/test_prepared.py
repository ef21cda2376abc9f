"""Statements that are planned once per connection, and rows that the driver reads by itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from experiments.models.prepared import execute, read

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("threshold, plans", [(None, 0), (1, 1)])
def test_only_a_connection_that_lasts_keeps_the_plan(threshold: int | None, plans: int) -> None:
    doubled = f"SELECT 2 * %s::bigint, 'plans {plans}'"
    kept = f"SELECT count(*)::int FROM pg_prepared_statements WHERE statement LIKE '%%plans {plans}%%' AND NOT from_sql"
    connection.ensure_connection()
    before, connection.connection.prepare_threshold = connection.connection.prepare_threshold, threshold
    try:
        assert [execute(doubled, [number])[0][0] for number in (1, 2, 3)] == [2, 4, 6]
    finally:
        connection.connection.prepare_threshold = before
    assert read(kept, [])[0][0] == plans


def test_times_and_json_come_as_they_are_stored() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    found = read("SELECT %s::timestamptz, %s::jsonb, NULL::jsonb", [at, '{"a": [1, 2.5, "é", null]}'])
    assert found == [(at, {"a": [1, 2.5, "é", None]}, None)]


def test_what_postgresql_refuses_is_an_error_of_djangos() -> None:
    with pytest.raises(DatabaseError, match="division by zero"):
        execute("SELECT 1 / %s::int", [0])


@pytest.mark.django_db(transaction=True)
def test_a_plan_that_a_migration_made_wrong_is_made_anew() -> None:
    connection.ensure_connection()
    raw = connection.connection
    before, raw.prepare_threshold = raw.prepare_threshold, 1
    look = "SELECT word FROM words WHERE word = %s::text"
    try:
        raw.execute("CREATE TEMPORARY TABLE words (word varchar(5))")
        for chars in (6, 7, 8):
            for _ in range(3):
                assert execute(look, ["a"]) == []
            # As from another connection: of this one the driver would see what it changes.
            raw.execute(f"DO $$ BEGIN ALTER TABLE words ALTER COLUMN word TYPE varchar({chars}); END $$")
            if chars == 7:
                with pytest.raises(OperationalError, match="must not change"), transaction.atomic():
                    execute(look, ["a"])
        assert execute(look, ["a"]) == []
    finally:
        raw.execute("DROP TABLE words")
        raw.prepare_threshold = before
