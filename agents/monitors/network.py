"""Traffic of each network interface, from /proc/net/dev."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"\s*([^\s:]{1,60}|\S{1,60}:[0-9]{1,4}):\s*([0-9]{1,20}(?:\s+[0-9]{1,20}){11,30})\s*", re.ASCII)
_COLUMNS = {"rx_bytes": 0, "rx_packets": 1, "tx_bytes": 8, "tx_packets": 9}

_BYTES = ChartGroup("network", "Network", 60)
_PACKETS = ChartGroup("packets", "Network packets", 65)


class NetworkMonitor(Monitor):
    """Rates of each interface that has ever carried anything, lo included."""

    kind = "network"
    cost = "one small file per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(r"network\.(.+)\.(rx|tx)_bytes_per_s", "bytes_per_s", "{host} network {1} {2}", _BYTES),
        ChannelKind(r"network\.(.+)\.(rx|tx)_packets_per_s", "packets_per_s", "{host} packets {1} {2}", _PACKETS),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/net/dev"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        out: dict[Channel, float] = {}
        old = _counters(before.text)
        for nic, counters in _counters(now.text).items():
            if nic not in old or not any(counters.values()):
                continue
            moved = {name: n - old[nic][name] for name, n in counters.items()}
            if min(moved.values()) < 0:
                continue  # the interface was made anew between the readings
            for name, n in moved.items():
                unit = "bytes_per_s" if name.endswith("bytes") else "packets_per_s"
                out[Channel(f"network.{nic}.{name}_per_s", unit)] = n / elapsed_s
        return out


def _counters(text: str) -> dict[str, dict[str, int]]:
    found = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line):
            numbers = [int(n) for n in match[2].split()]
            found[match[1]] = {name: numbers[i] for name, i in _COLUMNS.items()}
    return found
