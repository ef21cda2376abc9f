"""Processes of this machine by identity, and by the namespace that they are in."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.shell import LabError

REAP_S = 60.0


@dataclass(frozen=True)
class ProcessId:
    """A process of this machine; `start_ticks` (field 22 of /proc/PID/stat) tells it from a later one of the number."""

    pid: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Whether it runs; one that only waits to be reaped does not."""
        return start_ticks(self.pid) == self.start_ticks

    def kill(self) -> None:
        """Ends it and waits until it is gone. LabError when it stays."""
        end_s = time.monotonic() + REAP_S
        while self.alive:
            if time.monotonic() > end_s:
                raise LabError(f"Process {self.pid} cannot be ended.")
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.005)


@dataclass(frozen=True)
class HostProcess:
    """A process on a host: its number on this machine, its name, and its arguments."""

    pid: int
    name: str
    argv: tuple[str, ...]


def this_process() -> ProcessId:
    return ProcessId(os.getpid(), start_ticks(os.getpid()) or 0)


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is none or it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def in_namespace(kind: str, inode: int) -> Iterator[HostProcess]:
    """Every process in the namespace of `kind` (net, pid, ...) that has this inode number."""
    wanted = f"{kind}:[{inode}]"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # ended meanwhile
            if os.readlink(entry / "ns" / kind) == wanted and start_ticks(int(entry.name)) is not None:
                argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
                yield HostProcess(int(entry.name), (entry / "comm").read_text().strip(), tuple(argv))
