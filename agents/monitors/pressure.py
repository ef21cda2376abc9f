"""For how much of the time somebody on a host waited for CPUs, disks or memory, from /proc/pressure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_LINE = re.compile(r"^(some|full) avg10=\S{1,10} avg60=\S{1,10} avg300=\S{1,10} total=([0-9]{1,19})$", re.MULTILINE)
_WHAT = ("cpu", "io", "memory")
"""In the order in which the snippet reads them; each file begins with its line `some`."""

_WAITING = ChartGroup("pressure", "Share of time in which work waited (pressure)", 48)


class PressureMonitor(Monitor):
    """`some`: at least one task waited; `full`: all that had work did. Only where the kernel counts it (PSI)."""

    kind = "pressure"
    cost = "three small files per reading, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"pressure\.cpu\.some_ratio", "ratio", "{host} waited for CPUs", _WAITING, compared="Waiting for CPUs"
        ),
        ChannelKind(
            r"pressure\.io\.some_ratio", "ratio", "{host} waited for disks", _WAITING, compared="Waiting for disks"
        ),
        ChannelKind(
            r"pressure\.memory\.some_ratio",
            "ratio",
            "{host} waited for memory",
            _WAITING,
            compared="Waiting for memory",
        ),
        ChannelKind(r"pressure\.(io|memory)\.full_ratio", "ratio", "{host} all waited for {1}", _WAITING),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_us = (now.at_s - before.at_s) * 1e6
        old, new = stalled_us(before.text), stalled_us(now.text)
        return {
            Channel(f"pressure.{what}_ratio", "ratio"): min(1.0, (total - old[what]) / elapsed_us)
            for what, total in new.items()
            if elapsed_us > 0 and what != "cpu.full" and total >= old.get(what, total + 1)
        }


def stalled_us(text: str) -> dict[str, int]:
    """`io.some` -> microseconds since the host booted; {} when it is not known which file is missing."""
    found: dict[str, int] = {}
    files = 0
    for kind, total in _LINE.findall(text):
        files += kind == "some"
        if not 0 < files <= len(_WHAT):
            return {}
        found[f"{_WHAT[files - 1]}.{kind}"] = int(total)
    return found if files == len(_WHAT) else {}
