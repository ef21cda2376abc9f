"""How much of the processors of this machine a process may have beside the others."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

LOOK_S = 0.01
BETWEEN_WRITES_S = 0.1
"""Linux lets a plain user change the niceness of groups that often (kernel/sched/autogroup.c)."""
TRIES = 50


def stand_back(pid: int, nice: int) -> None:
    """Let others go first. For a process that leads, or is about to lead, a session, and has no threads yet.

    Linux may schedule each session as a group; between groups only their own niceness counts (man 7 sched, "The
    autogroup feature"). BlockingIOError when it was asked too often for `TRIES` times.
    """
    while os.getsid(pid) != pid:  # a forked one makes its session itself
        time.sleep(LOOK_S)
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    for left in reversed(range(TRIES)):
        try:
            with suppress(FileNotFoundError):  # a kernel without this feature
                Path(f"/proc/{pid}/autogroup").write_text(str(nice))
        except BlockingIOError:
            if not left:
                raise
            time.sleep(BETWEEN_WRITES_S)
        else:
            return
