"""How often a host switched between tasks, how many could run and how many waited for a disk, from /proc/stat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"^(ctxt|processes|procs_running|procs_blocked) ([0-9]{1,19})$", re.ASCII | re.MULTILINE)
_RATES = {"ctxt": "context_switches_per_s", "processes": "processes.started_per_s"}
_COUNTS = {"procs_running": "processes.runnable_count", "procs_blocked": "processes.blocked_count"}

_SWITCHES = ChartGroup("context_switches", "Context switches per second", 38)
_QUEUE = ChartGroup("run_queue", "Tasks that could run, and that waited for disks", 39)
_STARTED = ChartGroup("started", "Processes and threads started per second", 41)


class SchedulingMonitor(Monitor):
    """Of the whole host. The counts are of the moment of the reading, and the program that reads is one of them."""

    kind = "scheduling"
    cost = "/proc/stat once more per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"context_switches_per_s", "per_s", "{host} context switches", _SWITCHES, compared="Context switches"
        ),
        ChannelKind(
            r"processes\.runnable_count",
            "count",
            "{host} tasks that could run",
            _QUEUE,
            compared="Tasks that could run",
        ),
        ChannelKind(r"processes\.blocked_count", "count", "{host} tasks that waited for disks", _QUEUE),
        ChannelKind(r"processes\.started_per_s", "per_s", "{host} processes and threads started", _STARTED),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/stat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        old = {name: int(n) for name, n in _LINE.findall(before.text)}
        new = {name: int(n) for name, n in _LINE.findall(now.text)}
        out = {Channel(name, "count"): float(new[of]) for of, name in _COUNTS.items() if of in new}
        for of, name in _RATES.items():
            if of in old and new.get(of, -1) >= old[of]:
                out[Channel(name, "per_s")] = (new[of] - old[of]) / elapsed_s
        return out
