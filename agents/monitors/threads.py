"""CPU use of the server's threads by name, as `top -H` shows it, from /proc/PID/task/*/stat."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import TICKS_PER_S, Channel, Monitor, Reading

MAX_NAMES = 30
_NUMBERED = re.compile(r"-[0-9]{1,6}$", re.ASCII)

# A thread may have any name, with brackets, spaces and line breaks in it, but its state and numbers follow.
_STAT = re.compile(
    r"^([0-9]{1,10}) \((.{0,64}?)\) [A-Za-z] (?:-?[0-9]{1,20} ){10}([0-9]{1,20}) ([0-9]{1,20}) "
    r"(?:-?[0-9]{1,20} ){6}([0-9]{1,20})(?: -?[0-9]{1,20}){10,60}$",
    re.ASCII | re.MULTILINE | re.DOTALL,
)

_CPUS = ChartGroup("threads", "Server process and threads, in CPUs", 40)
_COUNTS = ChartGroup("thread_counts", "How many threads of each name there are", 45)


@dataclass(frozen=True)
class _Task:
    """A thread, or the process: CPU time, and when it began (both in ticks), which tells a reused number."""

    name: str
    ticks: int
    began: int


class ThreadsMonitor(Monitor):
    """1.0 = one CPU fully used. Threads of one name are added up; at most the 30 busiest names per reading.

    Names that differ in the number at their end are one: `catalina-exec-7` is `catalina-exec-*`.
    """

    kind = "threads"
    cost = "0.2 % of one core and 33 KB of output per 100 server threads, at one reading per second"
    channels = (
        ChannelKind(r"process\.cpu_ratio", "ratio", "{host} process cpu", _CPUS, compared="Server process CPU"),
        ChannelKind(r"threads\.(.+)\.cpu_ratio", "ratio", "{host} threads {1} cpu", _CPUS),
        ChannelKind(r"threads\.(.+)\.count", "count", "{host} threads {1}", _COUNTS),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat " + " ".join(f"/proc/{pid}/stat /proc/{pid}/task/[0-9]*/stat" for pid in pids) if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        old_processes, old_threads = _tasks(before.text)
        processes, threads = _tasks(now.text)
        out: dict[Channel, float] = {}
        moved = [
            process.ticks - old.ticks
            for number, process in processes.items()
            if (old := old_processes.get(number)) and process.began == old.began and process.ticks >= old.ticks
        ]
        if moved:
            # A process counts the time of threads that have ended too, which no sum over threads can know.
            out[Channel("process.cpu_ratio", "ratio")] = sum(moved) / TICKS_PER_S / elapsed_s
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


def _tasks(text: str) -> tuple[dict[int, _Task], dict[int, _Task]]:
    """Processes and threads by number. A process stands before its threads, and its first thread has its number."""
    processes: dict[int, _Task] = {}
    threads: dict[int, _Task] = {}
    for match in _STAT.finditer(text):
        name = _NUMBERED.sub("-*", "".join(c if c.isprintable() else "?" for c in match[2]).strip() or "?")
        number, task = int(match[1]), _Task(name, int(match[3]) + int(match[4]), int(match[5]))
        if number in threads:
            processes[number] = threads[number]
        if processes or threads:
            threads[number] = task
        else:
            processes[number] = task
    return processes, threads
