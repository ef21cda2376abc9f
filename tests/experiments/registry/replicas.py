"""A real streaming replica of the tests' PostgreSQL, which can be stopped, started and made to lag."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection

from benchhub.embedded_servers import POSTGRES_SETTINGS, postgres_programs
from benchhub.processes import end, run_as, spawn, wait_until
from benchhub.service_account import reachable_binaries, service_account


class Replica:
    """Copied from the server of the default connection, and following it; its socket is in the directory."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.account = directory, service_account()
        self.slot = directory.name.replace("-", "_").lower()
        if self.account is not None:
            os.chown(directory, self.account.uid, self.account.gid)
        self.binaries = reachable_binaries(postgres_programs(), self.account, directory / "programs")
        self.child: subprocess.Popen[bytes] | None = None
        where = connection.settings_dict
        copy = [
            str(self.binaries / "pg_basebackup"),
            "-h",
            where["HOST"],
            "-U",
            where["USER"],
            "-D",
            f"{directory}/data",
        ]
        # A slot from before the copy: the other tests write more meanwhile than the primary keeps by itself.
        with psycopg.connect(host=where["HOST"], user=where["USER"], dbname="postgres", autocommit=True) as primary:
            primary.execute("SELECT pg_create_physical_replication_slot(%s, true)", [self.slot])
        made = run_as(
            [*copy, f"--slot={self.slot}", "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"],
            self.account,
        )
        assert made.returncode == 0, made.stderr
        self.start()

    @property
    def settings(self) -> dict[str, Any]:
        """Those of a connection to it, in Django's form."""
        like = {**connection.settings_dict, "ENGINE": "django.db.backends.postgresql", "HOST": str(self.directory)}
        test = {**connection.settings_dict["TEST"], "MIRROR": "default"}
        return {**like, "OPTIONS": {"connect_timeout": "5"}, "CONN_MAX_AGE": 0, "TEST": test}

    def start(self) -> None:
        argv = [str(self.binaries / "postgres"), "-D", f"{self.directory}/data", "-k", str(self.directory)]
        argv += [f"--{key}={value}" for key, value in POSTGRES_SETTINGS.items()]
        log = self.directory / "postgres.log"
        self.child = spawn(argv, log=log, directory=Path("/"), on_parent_death=signal.SIGINT, account=self.account)
        assert wait_until(self._answers, seconds=100), log.read_text()

    def stop(self) -> None:
        if self.child is not None:
            end(self.child, signal.SIGINT, patience_s=30)
            self.child = None

    def remove(self) -> None:
        """Stop it, and let the primary forget what it kept for it."""
        self.stop()
        where = connection.settings_dict
        with psycopg.connect(host=where["HOST"], user=where["USER"], dbname="postgres", autocommit=True) as primary:
            primary.execute("SELECT pg_drop_replication_slot(%s)", [self.slot])
        shutil.rmtree(self.directory, ignore_errors=True)

    def stand_still(self) -> None:
        """Take what comes from the primary, and show none of it."""
        self._do("SELECT pg_wal_replay_pause()")
        paused = "SELECT pg_get_wal_replay_pause_state() = 'paused'"
        assert wait_until(lambda: bool(self._do(paused)), seconds=60)

    def go_on(self) -> None:
        self._do("SELECT pg_wal_replay_resume()")

    def _answers(self) -> bool:
        try:
            return bool(self._do("SELECT 1"))
        except psycopg.OperationalError:
            return False

    def _do(self, statement: str) -> Any:
        where = connection.settings_dict
        with psycopg.connect(
            host=str(self.directory), user=where["USER"], dbname=where["NAME"], autocommit=True
        ) as asked:
            row = asked.execute(statement.encode()).fetchone()
            return row[0] if row else None
