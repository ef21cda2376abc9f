"""Whether the database has the tables of this program."""

from __future__ import annotations

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

_migrated = False


def are_complete() -> bool:
    """Whether `migrate` would change nothing: all migrations, all columns, the cache's table, which it makes last."""
    cache = settings.CACHES["default"]["LOCATION"]
    return not has_unapplied_migrations() and not missing_columns() and cache in connection.introspection.table_names()


def has_unapplied_migrations() -> bool:
    global _migrated
    if not _migrated:  # once true it stays true for this program
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return not _migrated


def missing_columns() -> list[str]:
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
