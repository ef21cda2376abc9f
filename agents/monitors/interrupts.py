"""Interrupts and softirqs of each CPU, from /proc/interrupts and /proc/softirqs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_HEAD = re.compile(r"\s+(CPU[0-9]{1,5}(?:\s+CPU[0-9]{1,5}){0,8191})\s*", re.ASCII)
_ROW = re.compile(r"\s*([A-Za-z0-9_-]{1,40}):((?:\s+[0-9]{1,20})+)(?:\s.*)?", re.ASCII)
_FILES = ("hard", "soft")
"""In the order in which the snippet reads them; each file begins with the names of its CPUs."""

_ALL = ChartGroup("interrupts", "Interrupts and softirqs per second", 36)
_EACH = ChartGroup("interrupts_of_cpus", "Interrupts and softirqs of each CPU per second", 37)


class InterruptsMonitor(Monitor):
    """How often each CPU was interrupted by devices, timers and other CPUs (`hard`), and did what these left (`soft`).

    The time that this takes is part of the monitor `cpu`.
    """

    kind = "interrupts"
    cost = "two files per reading that grow with the CPUs: 3 kB where there are 2, some 500 kB where there are 128"
    channels = (
        ChannelKind(r"interrupts\.hard_per_s", "per_s", "{host} interrupts", _ALL, compared="Interrupts"),
        ChannelKind(r"interrupts\.soft_per_s", "per_s", "{host} softirqs", _ALL, compared="Softirqs"),
        ChannelKind(r"interrupts\.([0-9]+)\.hard_per_s", "per_s", "{host} cpu {1} interrupts", _EACH),
        ChannelKind(r"interrupts\.([0-9]+)\.soft_per_s", "per_s", "{host} cpu {1} softirqs", _EACH),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/interrupts /proc/softirqs"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """A CPU that went off or came has none; the totals are of the others."""
        elapsed_s = now.at_s - before.at_s
        old, new = _counts(before.text), _counts(now.text)
        out: dict[Channel, float] = {}
        for what in _FILES if elapsed_s > 0 else ():
            rates = {
                cpu: (count - old[what][cpu]) / elapsed_s
                for cpu, count in new.get(what, {}).items()
                if count >= old.get(what, {}).get(cpu, count + 1)
            }
            if rates:
                out[Channel(f"interrupts.{what}_per_s", "per_s")] = sum(rates.values())
            out |= {Channel(f"interrupts.{cpu}.{what}_per_s", "per_s"): rate for cpu, rate in rates.items()}
        return out


def _counts(text: str) -> dict[str, dict[int, int]]:
    """The sum of each CPU's column by file; CPUs that never had one (they are not there) are left out."""
    found: dict[str, dict[int, int]] = {}
    cpus: list[int] = []
    sums: dict[int, int] = {}
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line):
            if len(found) == len(_FILES):
                return {}
            cpus = [int(name[3:]) for name in head[1].split()]
            sums = found[_FILES[len(found)]] = dict.fromkeys(cpus, 0)
        elif (row := _ROW.fullmatch(line)) and len(numbers := row[2].split()) >= len(cpus) > 0:
            for cpu, number in zip(cpus, numbers, strict=False):
                sums[cpu] += int(number)
    return {what: {cpu: count for cpu, count in counts.items() if count} for what, counts in found.items()}
