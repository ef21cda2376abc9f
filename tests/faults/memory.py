"""Real out-of-memory kills: a process is put into a memory cgroup in which it gets no further page.

The kernel's own killer ends it, in that group alone; the machine is never short of memory.
"""

from __future__ import annotations

import os
from pathlib import Path

V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")


def can_kill() -> bool:
    """Whether this process may make memory groups here."""
    return os.geteuid() == 0 and (os.access(V1, os.W_OK) or "memory" in _controllers())


class TightGroup:
    """A memory group with next to no memory. `remove` it when its processes are gone."""

    def __init__(self, name: str) -> None:
        self._v1 = V1.is_dir()
        self.path = (V1 if self._v1 else V2) / f"benchhub-{name}-{os.getpid()}"
        self.path.mkdir()
        limit = "memory.limit_in_bytes" if self._v1 else "memory.max"
        (self.path / limit).write_text(str(os.sysconf("SC_PAGE_SIZE")))

    def take_in(self, pid: int) -> None:
        """From now on this process gets no memory beside what it has."""
        (self.path / "cgroup.procs").write_text(str(pid))

    @property
    def kills(self) -> int:
        """How many processes the kernel has killed here for want of memory."""
        told = (self.path / ("memory.oom_control" if self._v1 else "memory.events")).read_text()
        return int(dict(line.split() for line in told.splitlines())["oom_kill"])

    def remove(self) -> None:
        self.path.rmdir()


def _controllers() -> list[str]:
    path = V2 / "cgroup.subtree_control"
    return path.read_text().split() if path.exists() else []
