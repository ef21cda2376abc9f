"""Memory of a host, from /proc/meminfo."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"^(MemTotal|MemAvailable): +([0-9]{1,15}) kB$", re.ASCII | re.MULTILINE)

_USED = ChartGroup("memory", "Memory in use", 50)
_AVAILABLE = ChartGroup("memory_available", "Memory available", 55)


class MemoryMonitor(Monitor):
    """`used` = total - available: page cache that can be dropped does not count as used."""

    kind = "memory"
    cost = "one small file per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(r"memory\.used_bytes", "bytes", "{host} memory used", _USED, compared="Memory in use"),
        ChannelKind(r"memory\.available_bytes", "bytes", "{host} memory available", _AVAILABLE),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/meminfo"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        found = {name: int(kib) * 1024 for name, kib in _LINE.findall(now.text)}
        total, available = found.get("MemTotal"), found.get("MemAvailable")
        if total is None or available is None or available > total:
            return {}
        return {
            Channel("memory.used_bytes", "bytes"): float(total - available),
            Channel("memory.available_bytes", "bytes"): float(available),
        }
