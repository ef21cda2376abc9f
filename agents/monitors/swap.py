"""Memory pages that went to and from swap, from /proc/vmstat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"^(?:pswpin|pswpout) ([0-9]{1,19})$", re.ASCII | re.MULTILINE)

_PAGES = ChartGroup("swap", "Memory pages to and from swap since the host booted", 85)


class SwapMonitor(Monitor):
    """The count since the host booted, so that a gap in the readings hides nothing."""

    kind = "swap"
    cost = "one small file per reading, beside the 0.4 % of one core that all monitors share"
    channels = (ChannelKind(r"swap\.pages_count", "count", "{host} pages swapped", _PAGES),)

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/vmstat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        counts = [int(n) for n in _LINE.findall(now.text)]
        return {Channel("swap.pages_count", "count"): float(sum(counts))} if len(counts) == 2 else {}
