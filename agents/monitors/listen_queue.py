"""Connections that a host refused because nobody took them in time, and TCP timeouts, from /proc/net/netstat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_ROWS = re.compile(r"^TcpExt: ([A-Za-z0-9 ]{1,8000})\nTcpExt: ([0-9 -]{1,8000})$", re.ASCII | re.MULTILINE)
_RATES = {
    "ListenOverflows": "tcp.listen_overflows_per_s",
    "ListenDrops": "tcp.listen_drops_per_s",
    "TCPTimeouts": "tcp.timeouts_per_s",
}

_DROPPED = ChartGroup("listen", "TCP: connections that found the queue full, and timeouts", 76)


class ListenQueueMonitor(Monitor):
    """Of all listening sockets of the host (of its network namespace).

    Overflows: the server's queue of new connections (its backlog) was full; drops are these and all that were given up
    for another reason. Timeouts: a segment was sent again because no answer came in time.
    """

    kind = "listen_queue"
    cost = "one small file per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"tcp\.listen_overflows_per_s",
            "per_s",
            "{host} connections beyond the backlog",
            _DROPPED,
            compared="Connections beyond the backlog",
        ),
        ChannelKind(r"tcp\.listen_drops_per_s", "per_s", "{host} connections dropped by the kernel", _DROPPED),
        ChannelKind(r"tcp\.timeouts_per_s", "per_s", "{host} TCP timeouts", _DROPPED),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/net/netstat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        old, new = _counters(before.text), _counters(now.text)
        return {
            Channel(name, "per_s"): (new[counter] - old[counter]) / elapsed_s
            for counter, name in _RATES.items()
            if elapsed_s > 0 and counter in old and new.get(counter, -1) >= old[counter]
        }


def _counters(text: str) -> dict[str, int]:
    """The row of TcpExt by column; empty when names and numbers do not match."""
    if not (match := _ROWS.search(text)):
        return {}
    names, numbers = match[1].split(), match[2].split()
    if len(names) != len(numbers) or any(len(number) > 20 for number in numbers):
        return {}
    return {name: int(number) for name, number in zip(names, numbers, strict=True) if number.isdigit()}
