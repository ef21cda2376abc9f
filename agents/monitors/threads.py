"""CPU use of the server's processes and of their threads by name, as `top -H` shows it, from /proc/PID/task/*/stat."""

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
    r"(-?[0-9]{1,20}) (-?[0-9]{1,20}) (?:-?[0-9]{1,20} ){4}([0-9]{1,20})(?: -?[0-9]{1,20}){10,60}$",
    re.ASCII | re.MULTILINE | re.DOTALL,
)

# Finds the processes that a process has forked, and theirs, with nothing but what the shell has built in. Where the
# kernel does not tell them (CONFIG_PROC_CHILDREN), the process itself is left out as well, so that a part of the server
# is never taken for all of it; its threads are shown.
_WATCH = """\
  watch() {
    for one; do
      [ ! -r "/proc/$one/task/$one/children" ] || watched="$watched /proc/$one/stat"
      watched="$watched /proc/$one/task/[0-9]*/stat"
      for kin in /proc/$one/task/[0-9]*/children; do
        forked=
        read -r forked 2>/dev/null <"$kin"
        [ -z "$forked" ] || watch $forked
      done
    done
  }
  watched=
  watch"""

_CPUS = ChartGroup("threads", "Server process and threads, in CPUs", 40)
_COUNTS = ChartGroup("thread_counts", "How many threads of each name there are", 45)


@dataclass(frozen=True)
class _Task:
    """A thread, or a process: CPU time, and when it began (both in ticks), which tells a reused number.

    `waited` is the time of those that it forked, that have ended and that it has waited for, and of theirs.
    """

    name: str
    ticks: int
    waited: int
    began: int


class ThreadsMonitor(Monitor):
    """1.0 = one CPU fully used. All processes that the server has forked are added up, and the threads of one name; at
    most the 30 busiest names per reading.

    Names that differ in the number at their end are one: `catalina-exec-7` is `catalina-exec-*`. A process that leaves
    the server's tree, as a daemon does, is not seen.
    """

    kind = "threads"
    cost = "0.2 % of one core and 33 KB of output per 100 server threads or processes, at one reading per second"
    channels = (
        ChannelKind(r"process\.cpu_ratio", "ratio", "{host} process cpu", _CPUS, compared="Server process CPU"),
        ChannelKind(r"threads\.(.+)\.cpu_ratio", "ratio", "{host} threads {1} cpu", _CPUS),
        ChannelKind(r"threads\.(.+)\.count", "count", "{host} threads {1}", _COUNTS),
    )

    def before(self, pids: Sequence[int]) -> str:
        return f"{_WATCH} {' '.join(map(str, pids))}" if pids else ""

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat $watched" if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        old_processes, old_threads = _tasks(before.text)
        processes, threads = _tasks(now.text)
        out: dict[Channel, float] = {}
        used = _used(old_processes, processes, before.at_s)
        if used is not None:
            out[Channel("process.cpu_ratio", "ratio")] = used / TICKS_PER_S / elapsed_s
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


def _used(before: Mapping[int, _Task], now: Mapping[int, _Task], since_s: float) -> int | None:
    """The ticks that all processes have used since `since_s`; None when none of them was seen twice.

    A process counts the time of threads that have ended too, which no sum over threads can know, and the time of each
    process that it has waited for: with it, nothing is lost of those that lived less than a reading.
    """
    stayed = {number: old for number, old in before.items() if _is_same(old, now.get(number))}
    if not stayed:
        return None
    alive = [task for number, task in now.items() if number in stayed or task.began >= (since_s - 1) * TICKS_PER_S]
    own = sum(task.ticks for task in alive) - sum(old.ticks for old in stayed.values())
    # Who has ended since is in the time of who waited for it, and what it had used before `since_s` in `before`.
    whole = sum(task.ticks + task.waited for task in alive) - sum(old.ticks + old.waited for old in before.values())
    return max(own, whole)


def _is_same(old: _Task, new: _Task | None) -> bool:
    return new is not None and new.began == old.began and new.ticks >= old.ticks and new.waited >= old.waited


def _tasks(text: str) -> tuple[dict[int, _Task], dict[int, _Task]]:
    """Processes and threads by number. A process stands before its threads, and its first thread has its number."""
    processes: dict[int, _Task] = {}
    threads: dict[int, _Task] = {}
    for match in _STAT.finditer(text):
        name = _NUMBERED.sub("-*", "".join(c if c.isprintable() else "?" for c in match[2]).strip() or "?")
        ticks, waited = int(match[3]) + int(match[4]), int(match[5]) + int(match[6])
        number, task = int(match[1]), _Task(name, ticks, waited, int(match[7]))
        if number in threads:
            processes[number] = threads[number]
        threads[number] = task
    return processes, threads
