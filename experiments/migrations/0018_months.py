"""Events and samples are kept in months; what was stored before is the first of them, as it lies on the disk.

SQL, because Django makes no partitioned tables. Nothing is copied: the old table becomes the part for all ids of runs
below `RUNS_OF_A_MONTH`. Only the proof of that reads it, and others read and write meanwhile. Not one transaction, so
that the proof holds no lock that others wait for; whatever was interrupted is gone on with by the next `migrate`.

The column `id` stays, without an index, for the workers of the version before, which go on until they are replaced.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models, transaction

RUNS_OF_A_MONTH = 1_000_000_000
TABLES = {
    "experiments_runevent": ("event_seq_once_per_run", "run_id, seq"),
    "experiments_sampleseries": ("one_series_per_channel", "run_id, role, channel"),
}
"""Their unique constraints, which begin with the run: by it a row finds its month."""


def keep_in_months(apps: Any, schema_editor: Any) -> None:
    for table, (unique, columns) in TABLES.items():
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [table])
            if cursor.fetchone()[0]:
                continue  # done before an interruption
            _prove(cursor, table)
            with transaction.atomic(using=schema_editor.connection.alias):
                _take_apart(cursor, table, unique, columns)


def _prove(cursor: Any, table: str) -> None:
    """So that the table can become a part without being read under a lock."""
    proof = f"{table}_before"
    cursor.execute("SELECT 1 FROM pg_constraint WHERE conrelid = %s::regclass AND conname = %s", [table, proof])
    if cursor.fetchone() is None:
        check = f"CHECK (run_id < {RUNS_OF_A_MONTH}) NOT VALID"
        cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {proof} {check}")
    cursor.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {proof}")


def _take_apart(cursor: Any, table: str, unique: str, columns: str) -> None:
    """A table of parts in the old one's place, whose only part is the old one."""
    first = f"{table}_0"
    # In the order in which workers lock them, who are at work: first the run, then its event.
    cursor.execute(f"LOCK TABLE experiments_run, {table} IN ACCESS EXCLUSIVE MODE")
    cursor.execute("SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass AND contype IN ('f', 'p')", [table])
    for (name,) in cursor.fetchall():
        cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{name}"')
    cursor.execute(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass AND NOT indisunique", [table]
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"DROP INDEX {name}")  # of the run alone, with which the unique one begins
    _number_by_default(cursor, table)
    cursor.execute(f"ALTER TABLE {table} RENAME CONSTRAINT {unique} TO {first}_key")
    cursor.execute(f"ALTER TABLE {table} RENAME TO {first}")
    cursor.execute(
        f"CREATE TABLE {table} (LIKE {first} INCLUDING DEFAULTS, CONSTRAINT {unique} UNIQUE ({columns})) "
        "PARTITION BY RANGE (run_id)"
    )
    cursor.execute(f"ALTER TABLE {table} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({RUNS_OF_A_MONTH})")
    cursor.execute(f"ALTER TABLE {first} DROP CONSTRAINT {table}_before")


def _number_by_default(cursor: Any, table: str) -> None:
    """PostgreSQL before 17 has no identity columns in parts, so the numbers come from a sequence."""
    cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id'))", [table])
    (number,) = cursor.fetchone()
    cursor.execute(f"ALTER TABLE {table} ALTER COLUMN id DROP IDENTITY")
    cursor.execute(f"CREATE SEQUENCE {table}_id_seq START {number}")
    cursor.execute(f"ALTER TABLE {table} ALTER COLUMN id SET DEFAULT nextval('{table}_id_seq')")


def _run(related_name: str) -> Any:
    return models.ForeignKey(
        "experiments.run",
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name=related_name,
    )


class Migration(migrations.Migration):
    """Events and samples are kept in months, by the ids of their runs."""

    atomic = False
    dependencies = [("experiments", "0017_sites")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(keep_in_months, elidable=False)],
            state_operations=[
                migrations.RemoveField("RunEvent", "id"),
                migrations.AlterField("RunEvent", "run", _run("events")),
                migrations.AddField(
                    "RunEvent",
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                migrations.RemoveField("SampleSeries", "id"),
                migrations.AlterField("SampleSeries", "run", _run("samples")),
                migrations.AddField(
                    "SampleSeries",
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "role", "channel", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
            ],
        ),
    ]
