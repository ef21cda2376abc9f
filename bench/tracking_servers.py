"""BenchHub and MLflow as their users start them, on one PostgreSQL, for measuring them beside each other."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import psycopg

from bench.sshd import free_port
from benchhub import embedded
from benchhub.supervisor import child_specs

ADDRESS = "127.0.0.1"
START_LIMIT_S = 180.0
ANSWER_LIMIT_S = 300.0
TEAM, USER = "bench", "bench"


@dataclass(frozen=True)
class Server:
    """Where a server listens, and what every request to it carries."""

    port: int
    headers: Mapping[str, str]
    group: int = 0
    """The process group that the server and its workers are, once it runs."""

    @property
    def cpu_s(self) -> float:
        """The CPU time that its processes have used."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text(errors="replace").rpartition(")")[2].split()
                if int(fields[2]) == self.group:
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that stays open, as a session of a client library has it; with `fresh` a new one per request."""

    def __init__(self, server: Server, *, fresh: bool = False) -> None:
        self._fresh = fresh
        self._connection = http.client.HTTPConnection(ADDRESS, server.port, timeout=ANSWER_LIMIT_S)
        self._headers = {"Content-Type": "application/json", **server.headers}

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """The answer's body. SystemExit when it is not a success."""
        self._connection.request(method, path, body, {**self._headers, **headers})
        answer = self._connection.getresponse()
        content = answer.read()
        if self._fresh:
            self._connection.close()  # the next request opens another
        if answer.status >= 300:
            raise SystemExit(f"{method} {path} answered {answer.status}: {content[:400]!r}")
        return content

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return json.loads(self.send(method, path, None if body is None else json.dumps(body).encode()))


@contextlib.contextmanager
def database(folder: Path) -> Iterator[str]:
    """The embedded PostgreSQL of a scratch directory; yields the directory of its socket, and stops it at the end."""
    place = folder / "data"
    folder.chmod(0o755)  # for the account that PostgreSQL has when root starts it
    embedded.ensure(place)
    try:
        yield str(embedded.Places(place).sockets)
    finally:
        embedded.stop(place)


def connect(sockets: str, name: str) -> psycopg.Connection[Any]:
    return psycopg.connect(host=sockets, user=embedded.DATABASE_USER, dbname=name, autocommit=True)


@contextlib.contextmanager
def benchhub_server(folder: Path, sockets: str, processes: int) -> Iterator[Server]:
    """A migrated BenchHub with a team, an admin and a token; its web process is started as `manage.py up` does it.

    Its limits stand as shipped, but for the number of runs a day.
    """
    environment = {**os.environ, "BENCHHUB_DATA_DIR": str(folder / "data"), "BENCHHUB_HTTPS": "0"}
    for name in ("DATABASE_URL", "REDIS_URL", "DEBUG"):
        environment.pop(name, None)
    password = folder / "password"
    password.write_text(secrets.token_urlsafe(24))
    manage(environment, "migrate", "--noinput", "-v", "0")
    manage(environment, "createadmin", "--user", USER, "--team", TEAM, "--password-file", str(password))
    with connect(sockets, embedded.DATABASE_NAME) as connection:
        connection.execute("UPDATE experiments_team SET quota_runs_per_day = 2147483647")
    said = ("--team", TEAM, "--user", USER, "--name", "bench", "--scopes", "read,launch")
    token = manage(environment, "token", "create", *said).strip()
    port = free_port(ADDRESS)
    web = next(spec for spec in child_specs(port) if spec.name == "web")
    argv = [*web.argv, "--workers", str(processes)]
    server = Server(port, {"Authorization": f"Bearer {token}", "Host": "localhost"})
    with _running(argv, {**environment, **web.environment}, folder / "benchhub.log", server, "/readyz") as group:
        yield replace(server, group=group)


def seed_benchhub(folder: Path, team: str, runs: int) -> None:
    """Fill a team with made-up runs by the project's own command; the bench's user becomes its admin."""
    environment = {**os.environ, "BENCHHUB_DATA_DIR": str(folder / "data")}
    manage(environment, "seed_runs", str(runs), "--team", team, "--admin", USER)


def token_of(folder: Path, team: str) -> str:
    environment = {**os.environ, "BENCHHUB_DATA_DIR": str(folder / "data")}
    said = ("--team", team, "--user", USER, "--name", "bench", "--scopes", "read")
    return manage(environment, "token", "create", *said).strip()


@contextlib.contextmanager
def mlflow_server(program: str, folder: Path, sockets: str) -> Iterator[Server]:
    """MLflow's server with its own number of worker processes, its tables in a database beside BenchHub's."""
    with connect(sockets, embedded.DATABASE_NAME) as connection:
        connection.execute("CREATE DATABASE mlflow")
    port = free_port(ADDRESS)
    store = f"postgresql+psycopg2://{embedded.DATABASE_USER}@/mlflow?host={quote(sockets, safe='')}"
    argv = [program, "server", "--backend-store-uri", store, "--host", ADDRESS, "--port", str(port)]
    argv += ["--default-artifact-root", str(folder / "artifacts"), "--no-serve-artifacts"]
    own = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # its workers for other things would take CPU from it
        "PATH": f"{Path(program).parent}:{os.environ['PATH']}",
    }
    server = Server(port, {})
    with _running(argv, {**os.environ, **own}, folder / "mlflow.log", server, "/health") as group:
        yield replace(server, group=group)


def manage(environment: Mapping[str, str], *arguments: str) -> str:
    """What a command of manage.py prints. SystemExit with its own words when it fails."""
    argv = [sys.executable, str(embedded.PROJECT_DIR / "manage.py"), *arguments]
    done = subprocess.run(argv, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"manage.py {arguments[0]} failed:\n{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def _running(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, server: Server, path: str
) -> Iterator[int]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            argv,
            env=dict(environment),
            cwd=embedded.PROJECT_DIR,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, server, path, log)
        yield process.pid
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server with all that it has started; it leads a process group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10)


def _wait(process: subprocess.Popen[bytes], server: Server, path: str, log: Path) -> None:
    end_s = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end_s and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException, SystemExit):
            Client(server).send("GET", path)
            return
        time.sleep(0.2)
    raise SystemExit(f"A server did not start:\n{log.read_text(errors='replace')[-2000:]}")
