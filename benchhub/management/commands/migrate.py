"""Django's `migrate`, which afterwards looks whether the tables are those of this version."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connection


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        if options["app_label"] or options["plan"] or options["check_unapplied"]:
            return
        # The first migrations are still edited, so a database that has run them may lack what they make today.
        if missing := _missing_columns():
            raise CommandError(
                f"This database was made by an earlier state of the source: it lacks {', '.join(missing[:3])}"
                f"{' and more' if len(missing) > 3 else ''}. There is no way from there to this one yet. Go back to "
                "that state, `export` the teams, and `import` them into an empty database."
            )


def _missing_columns() -> list[str]:
    """Columns of BenchHub's own models that the database does not have, as table.column."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = ANY(current_schemas(false))"
        )
        there = set(cursor.fetchall())
    models = apps.get_app_config("experiments").get_models(include_auto_created=True)
    wanted = [(model._meta.db_table, field.column) for model in models for field in model._meta.concrete_fields]
    return [f"{table}.{column}" for table, column in wanted if (table, column) not in there]
