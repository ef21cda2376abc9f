"""`manage.py up`: all of BenchHub on one machine, as children of one process that restarts and stops them."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import IO

from benchhub.embedded import PROJECT_DIR
from benchhub.environment import envint
from benchhub.probes import READY
from benchhub.processes import end, spawn
from benchhub.terminal import Terminal
from experiments.registry.workers.queues import RUNS, queue_name

ADDRESS = "127.0.0.1"
LOOK_INTERVAL_S = 0.2
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
LATER_S = 30.0  # what may start later does so then at the latest: work goes on without pages
RUNS_AT_ONCE = 16
STEADY_S = 60.0  # a child that ran this long starts with the first pause again


class SupervisorError(Exception):
    """BenchHub cannot start; the message says what to do."""


@dataclass(frozen=True)
class ChildSpec:
    """A process to keep running. Children of a lower `stop_turn` are stopped, all together, before the next turn.

    Those that may start `later` leave the processor to the others until the web answers: people wait for its pages.
    """

    name: str
    argv: tuple[str, ...]
    stop_turn: int
    patience_s: float
    later: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Running:
    """What the record of a running supervisor says."""

    pid: int
    url: str


@dataclass
class Child:
    spec: ChildSpec
    process: subprocess.Popen[bytes]
    started_s: float
    pause_s: float = FIRST_PAUSE_S
    restart_at_s: float | None = None


def child_specs(port: int) -> tuple[ChildSpec, ...]:
    """The processes of BenchHub. Runs wait in threads of one worker; the dispatcher has another to itself.

    The threads of a worker share a few connections to the database.
    """
    shared = {"DATABASE_POOL_SIZE": os.environ.get("DATABASE_POOL_SIZE", "10")}
    python = sys.executable
    celery = (python, "-m", "celery", "-A", "benchhub")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    # SIGTERM asks Celery for a warm shutdown: runs hand over at once, so it is short; patience bounds what hangs.
    web = (python, "-m", "benchhub.web", "--host", ADDRESS, "--port", str(port))
    at_once = str(envint("BENCHHUB_RUNS", RUNS_AT_ONCE))
    runs = (*celery, "worker", "-n", "runs@%h", "-Q", "runs", "-P", "threads", "-c", at_once, *quiet)
    default = (*celery, "worker", "-n", "default@%h", "-Q", "default", "-P", "threads", "-c", "8", *quiet)
    return (
        ChildSpec("web", web, 1, 15),
        ChildSpec("worker-runs", runs, 2, 45, later=True, environment=shared),
        ChildSpec("worker-default", default, 2, 45, later=True, environment=shared),
        ChildSpec("beat", (*celery, "beat"), 0, 10, later=True),
    )


def site_specs(site: str, slots: int = RUNS_AT_ONCE) -> tuple[ChildSpec, ...]:
    """The workers of one site: the same two as at the central one, on the site's queues."""
    found = []
    for spec in child_specs(0):
        if not spec.name.startswith("worker-"):
            continue
        argv = list(spec.argv)
        kind = argv[argv.index("-Q") + 1]
        argv[argv.index("-n") + 1] = f"{kind}-{site}@%h"
        argv[argv.index("-Q") + 1] = queue_name(kind, site)
        if kind == RUNS:
            argv[argv.index("-c") + 1] = str(slots)
        found.append(
            replace(spec, argv=tuple(argv), later=False, environment={**spec.environment, "BENCHHUB_SITE": site})
        )
    return tuple(found)


def preparations() -> tuple[ChildSpec, ...]:
    """What must have ended well before the children start."""
    manage = (sys.executable, str(PROJECT_DIR / "manage.py"))
    return (
        ChildSpec("migrate", (*manage, "migrate", "--noinput"), 0, 60),
        ChildSpec("collectstatic", (*manage, "collectstatic", "--noinput", "-v", "0"), 0, 10),
    )


class Lock:
    """Held by the one supervisor of a data directory; the kernel gives it back however the supervisor ends."""

    def __init__(self, data_dir: Path) -> None:
        control = data_dir / "services"
        control.mkdir(parents=True, exist_ok=True)
        self.file: IO[str] = (control / "supervisor.lock").open("a+", encoding="utf-8")

    def take(self, url: str) -> Running | None:
        """None when the lock is ours now, else what runs already."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(self.file)
        self.file.truncate(0)
        json.dump({"pid": os.getpid(), "url": url}, self.file)
        self.file.flush()
        return None


def running(data_dir: Path) -> Running | None:
    """What holds the lock of a data directory; None when nobody does."""
    file = data_dir / "services" / "supervisor.lock"
    if not file.exists():
        return None
    with file.open("r+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(lock)
    return None


def _read(lock: IO[str]) -> Running:
    lock.seek(0)
    record = json.loads(lock.read() or '{"pid": 0, "url": ""}')
    return Running(pid=int(record["pid"]), url=str(record["url"]))


class Supervisor:
    def __init__(self, data_dir: Path, specs: Sequence[ChildSpec], terminal: Terminal) -> None:
        self.data_dir = data_dir
        self.specs = specs
        self.terminal = terminal
        self.children: dict[str, Child] = {}
        self.stopping = False

    def listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)

    def prepare(self, steps: Sequence[ChildSpec]) -> None:
        """Runs the steps side by side. Raises SupervisorError with the log of the first that fails."""
        running = {spec.name: (spec, self._spawn(spec)) for spec in steps}
        try:
            while running and not self.stopping:
                for name, (_, process) in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[name]
                    if process.returncode != 0:
                        log = self._log(name)
                        raise SupervisorError(f"{name} failed; from {log}:\n{_tail(log)}")
                time.sleep(0.05)
        finally:
            for spec, process in running.values():
                end(process, signal.SIGTERM, patience_s=spec.patience_s)

    def start(self) -> None:
        self._start(later=False)

    def supervise(self, port: int | None, on_ready: Callable[[], None]) -> None:
        """Returns when asked to stop; calls `on_ready` once, when the web answers, if there is one."""
        began, told, all_there = time.monotonic(), False, False
        while not self.stopping:
            for child in self.children.values():
                self._look_after(child)
            if not told and port is not None and web_answers(port):
                told = True
                on_ready()
            if not all_there and (told or time.monotonic() - began > LATER_S):
                all_there = True
                self._start(later=True)
            self.terminal.follow()
            time.sleep(LOOK_INTERVAL_S)

    def stop(self) -> None:
        """Turn by turn: no new work, no new requests, then the workers; nothing is left in their sessions."""
        for turn in sorted({child.spec.stop_turn for child in self.children.values()}):
            leaving = [child for child in self.children.values() if child.spec.stop_turn == turn]
            for child in leaving:
                if child.process.poll() is None:
                    child.process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + max(child.spec.patience_s for child in leaving)
            for child in leaving:
                _wait(child.process, deadline)
                end(child.process, signal.SIGKILL, patience_s=5)
                self.terminal.say(child.spec.name, "stopped")

    def _start(self, *, later: bool) -> None:
        for spec in self.specs:
            if spec.later == later and not self.stopping:
                self.children[spec.name] = Child(spec, self._spawn(spec), time.monotonic())

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.restart_at_s is not None:
            if now >= child.restart_at_s:
                child.process, child.started_s, child.restart_at_s = self._spawn(child.spec), now, None
            return
        if child.process.poll() is None:
            return
        end(child.process, signal.SIGKILL, patience_s=5)  # what it left in its session
        if now - child.started_s > STEADY_S:
            child.pause_s = FIRST_PAUSE_S
        child.restart_at_s = now + child.pause_s
        status = child.process.returncode
        self.terminal.warn(
            child.spec.name,
            f"ended with {status}; starts again in {child.pause_s:.0f} s (log: {self._log(child.spec.name)})",
        )
        child.pause_s = min(child.pause_s * 2, LONGEST_PAUSE_S)

    def _spawn(self, spec: ChildSpec) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "benchhub.settings"),
            "BENCHHUB_DATA_DIR": str(self.data_dir),
            "BENCHHUB_COLLECTED_STATIC": "1",
            "PYTHONUNBUFFERED": "1",
            **spec.environment,
        }
        return spawn(spec.argv, log=self._log(spec.name), environment=environment, directory=PROJECT_DIR)

    def _log(self, name: str) -> Path:
        return self.data_dir / "logs" / f"{name}.log"


def hold_port(port: int) -> socket.socket:
    """What keeps the port for this `up` until it is closed. SupervisorError when somebody has it.

    The web takes the port itself, seconds later: until then a name that only one process of the machine can have says
    who is about to. Else the second of two would find the first one's pages and call itself ready.
    """
    require_free_port(port)
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(f"\0benchhub-up-{ADDRESS}-{port}")
    except OSError as error:
        held.close()
        raise SupervisorError(
            f"Another BenchHub is starting on port {port}, with another data directory; choose another with --port."
        ) from error
    return held


def require_free_port(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            who = "another BenchHub, with another data directory" if web_answers(port) else error.strerror
            raise SupervisorError(f"Port {port} is taken ({who}); choose another with --port.") from error


def web_answers(port: int) -> bool:
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=2)
    try:
        connection.request("GET", READY)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _wait(process: subprocess.Popen[bytes], deadline: float) -> None:
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        pass


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
