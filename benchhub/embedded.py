"""BenchHub's own PostgreSQL and Redis for the one-machine start: on sockets only, in the data directory.

Without DATABASE_URL and REDIS_URL every process that needs the database calls `ensure`. The services belong to a
keeper process, and live as long as anyone uses them: each user holds a shared lock that the kernel gives back even
when the user is killed, and the keeper stops everything once it can have that lock for itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from benchhub.processes import is_running, open_log, wait_until

PROJECT_DIR = Path(__file__).resolve().parent.parent
DATABASE_NAME = "benchhub"
DATABASE_USER = "benchhub"
SOCKET_PATH_LIMIT_BYTES = 107  # sun_path of Linux less its closing NUL
START_LIMIT_S = 120.0  # the first start writes a new cluster; a start after a power cut replays the log
_held: dict[Path, IO[bytes]] = {}


class EmbeddedError(Exception):
    """The embedded services did not start or stop; the message says why."""


@dataclass(frozen=True)
class EmbeddedUrls:
    database_url: str
    redis_url: str


@dataclass(frozen=True)
class EmbeddedStatus:
    """`pinned` means that the services stay until they are stopped by hand."""

    running: bool
    keeper_pid: int | None
    pinned: bool


@dataclass(frozen=True)
class Places:
    """Every path that the services use below one data directory."""

    data_dir: Path

    @property
    def control(self) -> Path:
        return self.data_dir / "services"

    @property
    def users_lock(self) -> Path:
        return self.control / "users.lock"

    @property
    def start_lock(self) -> Path:
        return self.control / "start.lock"

    @property
    def keeper_lock(self) -> Path:
        return self.control / "keeper.lock"

    @property
    def state(self) -> Path:
        return self.control / "state.json"

    @property
    def pin(self) -> Path:
        return self.control / "pinned"

    @property
    def cluster(self) -> Path:
        return self.data_dir / "postgres" / "18"

    @property
    def redis(self) -> Path:
        return self.data_dir / "redis"

    @property
    def sockets(self) -> Path:
        """In the data directory, or in /tmp under a short name of its own when that path is too long for a socket."""
        usual = self.data_dir / "sockets"
        if len(os.fsencode(usual / ".s.PGSQL.5432.lock")) <= SOCKET_PATH_LIMIT_BYTES:
            return usual
        name = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:12]
        return Path(f"/tmp/benchhub-{os.geteuid()}-{name}")  # noqa: S108 - made 0700, its owner is checked

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis.sock"


def urls(data_dir: Path) -> EmbeddedUrls:
    """Where the services of a data directory are reached; pure, starts nothing."""
    places = Places(data_dir)
    return EmbeddedUrls(
        database_url=f"postgresql://{DATABASE_USER}@/{DATABASE_NAME}?host={quote(str(places.sockets), safe='')}",
        redis_url=f"unix://{quote(str(places.redis_socket))}?db=0",
    )


def ensure(data_dir: Path) -> EmbeddedUrls:
    """Starts what is not running and counts this process as a user until it ends; may be called any time, by anyone.

    Raises EmbeddedError when the services do not come up.
    """
    places = Places(data_dir)
    places.control.mkdir(parents=True, exist_ok=True)
    if data_dir not in _held:
        users = places.users_lock.open("ab")
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper is stopping
        _held[data_dir] = users
    if not _ready(places):
        with places.start_lock.open("ab") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            _start(places)
    return urls(data_dir)


def release(data_dir: Path) -> None:
    """This process no longer uses the services; the keeper stops them when nobody else does."""
    users = _held.pop(data_dir, None)
    if users is not None:
        users.close()


def wait_while_unused(data_dir: Path, *, seconds: float = 60.0) -> None:
    """Waits until the keeper has stopped the services, or somebody else turns out to use or to have pinned them."""
    places = Places(data_dir)

    def settled() -> bool:
        state = status(data_dir)
        return state.keeper_pid is None or state.pinned or _shared(places.users_lock)

    wait_until(settled, seconds=seconds)


def pin(data_dir: Path) -> None:
    """Keeps the running services until `stop`, even when nobody uses them."""
    state = status(data_dir)
    if state.keeper_pid is None:
        raise EmbeddedError("The embedded services are not running.")
    Places(data_dir).pin.write_text(str(state.keeper_pid), encoding="utf-8")


def stop(data_dir: Path, *, patience_s: float = 60.0) -> bool:
    """Stops the services, even with users, and waits until they are gone; False when they were not running."""
    places = Places(data_dir)
    release(data_dir)
    state = status(data_dir)
    if state.keeper_pid is not None and is_running(state.keeper_pid, "benchhub.keeper"):
        os.kill(state.keeper_pid, signal.SIGTERM)
    if not wait_until(lambda: not _locked(places.keeper_lock), seconds=patience_s):
        raise EmbeddedError(f"The embedded services did not stop in {patience_s:.0f} s; see {places.control}.")
    return state.running


def status(data_dir: Path) -> EmbeddedStatus:
    places = Places(data_dir)
    if not _locked(places.keeper_lock):
        return EmbeddedStatus(running=False, keeper_pid=None, pinned=False)
    keeper_pid = int(places.keeper_lock.read_text(encoding="utf-8") or 0) or None
    return EmbeddedStatus(running=places.state.exists(), keeper_pid=keeper_pid, pinned=is_pinned(places, keeper_pid))


def is_pinned(places: Places, keeper_pid: int | None) -> bool:
    """Whether this very keeper was told to stay; the note of an earlier one, from before a reboot, does not count."""
    try:
        return places.pin.read_text(encoding="utf-8") == str(keeper_pid)
    except OSError:
        return False


def _ready(places: Places) -> bool:
    return places.state.exists() and _locked(places.keeper_lock)


def _locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _shared(path: Path) -> bool:
    """Whether some other user holds the users' lock; the keeper's own hold while stopping is not a user's."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _start(places: Places) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not _ready(places):
        if not _locked(places.keeper_lock):
            _spawn_keeper(places)
            return
        if time.monotonic() > deadline:  # one that is stopping, or hangs
            raise EmbeddedError(f"The embedded services neither start nor stop; see {places.control}.")
        time.sleep(0.05)


def _spawn_keeper(places: Places) -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as answers, open_log(places.control / "keeper.log") as log:
        try:
            subprocess.Popen(
                [sys.executable, "-m", "benchhub.keeper", str(places.data_dir), str(write_end)],
                cwd=PROJECT_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in our terminal is not for it
                pass_fds=(write_end,),
            )
        finally:
            os.close(write_end)
        text = answers.read().decode("utf-8", "replace")
    if not text:
        raise EmbeddedError(f"The embedded services ended while starting; see {places.control / 'keeper.log'}.")
    answer = json.loads(text)
    if answer["error"]:
        raise EmbeddedError(str(answer["error"]))
