"""New TCP connections and repeated segments of a host, and how many ports its own connections may use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_TCP = re.compile(r"^Tcp: ([A-Za-z ]{1,1000})\nTcp: ([0-9 -]{1,1000})$", re.ASCII | re.MULTILINE)
_PORTS = re.compile(r"^([0-9]{1,5})\s+([0-9]{1,5})$", re.ASCII | re.MULTILINE)
_RATES = {
    "ActiveOpens": ("opened", "connections_per_s"),
    "PassiveOpens": ("accepted", "connections_per_s"),
    "RetransSegs": ("repeated", "segments_per_s"),
}

_CONNECTIONS = ChartGroup("connections", "New TCP connections", 70)
_REPEATED = ChartGroup("repeated", "TCP segments sent again", 75)
_PORTS_LEFT = ChartGroup("ports", "Ports for a host's own connections", 80)


class SocketsMonitor(Monitor):
    """Rates of all TCP of the host (of its network namespace), over IPv4 and IPv6."""

    kind = "sockets"
    cost = "two small files per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"tcp\.(opened|accepted)_connections_per_s",
            "connections_per_s",
            "{host} TCP connections {1}",
            _CONNECTIONS,
        ),
        ChannelKind(r"tcp\.repeated_segments_per_s", "segments_per_s", "{host} TCP segments sent again", _REPEATED),
        ChannelKind(r"tcp\.local_ports_count", "count", "{host} ports for its connections", _PORTS_LEFT),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/net/snmp /proc/sys/net/ipv4/ip_local_port_range"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        out: dict[Channel, float] = {}
        if (ports := _PORTS.search(now.text)) and int(ports[1]) <= int(ports[2]):
            out[Channel("tcp.local_ports_count", "count")] = float(int(ports[2]) - int(ports[1]) + 1)
        elapsed_s = now.at_s - before.at_s
        old, new = _counters(before.text), _counters(now.text)
        for counter, (name, unit) in _RATES.items():
            moved = new[counter] - old[counter] if counter in new and counter in old else -1
            if moved >= 0 and elapsed_s > 0:
                out[Channel(f"tcp.{name}_{unit}", unit)] = moved / elapsed_s
        return out


def _counters(text: str) -> dict[str, int]:
    """The row of TCP by column; empty when names and numbers do not match."""
    if not (match := _TCP.search(text)):
        return {}
    names, numbers = match[1].split(), match[2].split()
    if len(names) != len(numbers) or any(len(number) > 20 for number in numbers):
        return {}
    return {name: int(number) for name, number in zip(names, numbers, strict=True) if number.isdigit()}
