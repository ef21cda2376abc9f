"""Starts and stops child processes so that none of them outlives its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PR_SET_PDEATHSIG = 1
LOG_LIMIT_BYTES = 10 * 1024 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Account:
    """The system account that a child runs as."""

    name: str
    uid: int
    gid: int


def open_log(path: Path) -> IO[bytes]:
    """A log file to append to; one older file is kept when it has grown large."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_LIMIT_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab", buffering=0)


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    on_parent_death: signal.Signals = signal.SIGTERM,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    account: Account | None = None,
) -> subprocess.Popen[bytes]:
    """A child in a session of its own that gets a signal when its parent dies, however that happens.

    The kernel ties this to the calling thread, so call it from the main thread only.
    """
    with open_log(log) as output:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=dict(environment) if environment is not None else None,
            start_new_session=True,
            preexec_fn=_die_with(os.getpid(), on_parent_death),
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=() if account else None,
            umask=0o077 if account else -1,
        )


def run_as(argv: Sequence[str], account: Account | None, *, directory: str = "/") -> subprocess.CompletedProcess[str]:
    """Runs a short command to its end, as another account when one is given."""
    return subprocess.run(
        list(argv),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=directory,
        check=False,
        timeout=120,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=() if account else None,
    )


def end(child: subprocess.Popen[bytes], first: signal.Signals, *, patience_s: float) -> None:
    """Asks a child to stop, waits, then kills what is left of its session."""
    if child.poll() is None:
        child.send_signal(first)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            child.kill()
    kill_group(child.pid)
    child.wait()


def kill_group(group: int) -> None:
    """Kills what a child that was spawned here has left behind in its process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_until(condition: Callable[[], bool], *, seconds: float, interval_s: float = 0.05) -> bool:
    """Whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval_s)
    return True


def is_running(pid: int, marker: str) -> bool:
    """Whether the process exists, is no zombie, and has the marker in its command line (pids are used again)."""
    try:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return marker.encode() in command_line


def _die_with(parent: int, death_signal: signal.Signals) -> Callable[[], None]:
    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:  # the parent died before the line above
            os._exit(1)

    return prepare
