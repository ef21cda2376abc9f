"""CPU use of the server's threads by name, as `top -H` shows it, from /proc/PID/task/*/stat."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from agents.monitors.base import Channel, Monitor, Reading
from agents.monitors.cpu import TICKS_PER_S

MAX_NAMES = 30

# A thread may have any name, with brackets, spaces and line breaks in it, but its state and numbers follow.
_STAT = re.compile(
    r"^([0-9]{1,10}) \((.{0,64}?)\) [A-Za-z] (?:-?[0-9]{1,20} ){10}([0-9]{1,20}) ([0-9]{1,20}) "
    r"(?:-?[0-9]{1,20} ){6}([0-9]{1,20})(?: -?[0-9]{1,20}){10,60}$",
    re.ASCII | re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class _Task:
    """A thread, or the process: CPU time, and when it began (both in ticks), which tells a reused number."""

    name: str
    ticks: int
    began: int


class ThreadsMonitor(Monitor):
    """1.0 = one CPU fully used. Threads of one name are added up; at most the 30 busiest names per reading."""

    kind = "threads"
    cost = "0.2 % of one core and 33 KB of output per 100 server threads, at one reading per second"

    def snippet(self, pid: int | None) -> str:
        return "" if pid is None else f"cat /proc/{pid}/stat /proc/{pid}/task/[0-9]*/stat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        old_process, old_threads = _tasks(before.text)
        process, threads = _tasks(now.text)
        out: dict[Channel, float] = {}
        if process and old_process and process.began == old_process.began and process.ticks >= old_process.ticks:
            # The process counts the time of threads that have ended too, which no sum over threads can know.
            out[Channel("process.cpu_ratio", "ratio")] = (process.ticks - old_process.ticks) / TICKS_PER_S / elapsed_s
        spent: defaultdict[str, int] = defaultdict(int)
        count: defaultdict[str, int] = defaultdict(int)
        most = round((elapsed_s * 1.5 + 0.5) * TICKS_PER_S)
        for number, thread in threads.items():
            count[thread.name] += 1
            old = old_threads.get(number)
            since = old.ticks if old and old.began == thread.began else 0
            ticks = thread.ticks - since
            if old_threads and 0 <= ticks <= most:
                spent[thread.name] += ticks
        for name in sorted(spent, key=lambda name: (-spent[name], name))[:MAX_NAMES]:
            out[Channel(f"threads.{name}.cpu_ratio", "ratio")] = spent[name] / TICKS_PER_S / elapsed_s
            out[Channel(f"threads.{name}.count", "count")] = float(count[name])
        return out


def _tasks(text: str) -> tuple[_Task | None, dict[int, _Task]]:
    """The process, which stands first, and its threads by number."""
    process: _Task | None = None
    threads: dict[int, _Task] = {}
    for match in _STAT.finditer(text):
        name = "".join(c if c.isprintable() else "?" for c in match[2]).strip() or "?"
        task = _Task(name, int(match[3]) + int(match[4]), int(match[5]))
        if process is None:
            process = task
        else:
            threads[int(match[1])] = task
    return process, threads
