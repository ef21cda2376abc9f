"""How much of the processors of this machine a process may have beside the others."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

LOOK_S = 0.01

def stand_back(pid: int, nice: int) -> None:
    """Let others go first: the process, and its session, which Linux may schedule as a group of its own (man 7 sched,
    "The autogroup feature": between sessions only the niceness of the groups counts). Before it has threads."""
    while os.getsid(pid) != pid:  # a forked one makes its session itself
        time.sleep(LOOK_S)
    os.setpriority(os.PRIO_PROCESS, pid, nice)
    with suppress(FileNotFoundError):  # a kernel without this feature
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
