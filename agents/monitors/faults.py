"""Page faults of a host, from /proc/vmstat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"^(pgfault|pgmajfault) ([0-9]{1,19})$", re.ASCII | re.MULTILINE)

_FAULTS = ChartGroup("faults", "Page faults per second", 51)


class FaultsMonitor(Monitor):
    """`major`: the page had to be read from a disk; `minor`: memory that was there, or that a program touched first."""

    kind = "faults"
    cost = "/proc/vmstat once more per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"faults\.major_per_s", "per_s", "{host} page faults from disk", _FAULTS, compared="Major page faults"
        ),
        ChannelKind(r"faults\.minor_per_s", "per_s", "{host} page faults", _FAULTS, compared="Minor page faults"),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/vmstat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        old = {name: int(n) for name, n in _LINE.findall(before.text)}
        new = {name: int(n) for name, n in _LINE.findall(now.text)}
        moved = {name: new[name] - old[name] for name in old.keys() & new.keys()}
        if elapsed_s <= 0 or len(moved) < 2 or not 0 <= moved["pgmajfault"] <= moved["pgfault"]:
            return {}
        return {
            Channel("faults.major_per_s", "per_s"): moved["pgmajfault"] / elapsed_s,
            Channel("faults.minor_per_s", "per_s"): (moved["pgfault"] - moved["pgmajfault"]) / elapsed_s,
        }
