"""CPU use of a host, per CPU and in total, from /proc/stat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import TICKS_PER_S, Channel, Monitor, OfTheSet, Reading

_CPU = re.compile(r"cpu([0-9]{1,5}) ([0-9 ]{1,400})", re.ASCII)
_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SHOWN = ("busy", "user", "system", "interrupt", "iowait", "steal")
_JITTER_TICKS = 10

_SET = ChartGroup("cpu", "CPUs of server and load tool", 10)
_SET_INTERRUPTS = ChartGroup("cpu_interrupts", "Interrupts on the CPUs of server and load tool", 15)
_MACHINE = ChartGroup("machine", "Whole machines", 20)
_MACHINE_PARTS = ChartGroup("machine_parts", "Whole machines: programs and interrupts", 25)
_CORES = ChartGroup("cores", "Each CPU", 30)
_CORE_PARTS = ChartGroup("core_parts", "Each CPU: what it did", 35)


class CpuMonitor(Monitor):
    """Shares of time, 0 to 1. busy = user + system, without waiting for disks and without what a hypervisor took.

    user includes nice and guests, system includes interrupts, which are shown on their own too.
    """

    kind = "cpu"
    cost = "0.4 % of one core at one reading per second, shared by all monitors; /proc/stat grows with the CPUs"
    channels = (
        ChannelKind(r"cpu_set\.busy_ratio", "ratio", "{host} CPUs busy", _SET, panel="cpu", compared="CPU busy"),
        ChannelKind(r"cpu_set\.interrupt_ratio", "ratio", "{host} cpu set interrupt", _SET_INTERRUPTS),
        ChannelKind(
            r"cpu\.busy_ratio", "ratio", "{host} cpu busy", _MACHINE, panel="cpu", hidden_by="cpu_set.busy_ratio"
        ),
        ChannelKind(r"cpu\.(system|iowait|steal)_ratio", "ratio", "{host} cpu {1}", _MACHINE),
        ChannelKind(r"cpu\.(user|interrupt)_ratio", "ratio", "{host} cpu {1}", _MACHINE_PARTS),
        ChannelKind(r"cpu\.([0-9]+)\.busy_ratio", "ratio", "{host} cpu {1} busy", _CORES),
        ChannelKind(
            r"cpu\.([0-9]+)\.(user|system|interrupt|iowait|steal)_ratio", "ratio", "{host} cpu {1} {2}", _CORE_PARTS
        ),
    )
    of_the_set = (
        OfTheSet("cpu_set.busy_ratio", "ratio", "cpu.{}.busy_ratio", "cpu.busy_ratio"),
        OfTheSet("cpu_set.interrupt_ratio", "ratio", "cpu.{}.interrupt_ratio", "cpu.interrupt_ratio"),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return "cat /proc/stat"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        out: dict[Channel, float] = {}
        total = dict.fromkeys(_STATES, 0)
        limit = (now.at_s - before.at_s) * TICKS_PER_S * 1.5 + TICKS_PER_S / 2
        old = _ticks(before.text)
        for cpu, ticks in _ticks(now.text).items():
            spent = _spent(old[cpu], ticks, limit) if cpu in old else None
            if spent:
                out.update(_shares(f"cpu.{cpu}", spent))
                for state, n in spent.items():
                    total[state] += n
        if any(total.values()):
            # The kernel's own total jumps when a CPU goes off or on: add up the CPUs that can be trusted instead.
            out.update(_shares("cpu", total))
        return out


def _ticks(text: str) -> dict[int, dict[str, int]]:
    cpus = {}
    for line in text.splitlines():
        if match := _CPU.fullmatch(line.strip()):
            numbers = [int(n) for n in match[2].split()[: len(_STATES)] if len(n) <= 20]
            if len(numbers) >= 4:
                cpus[int(match[1])] = dict(zip(_STATES, numbers, strict=False))
    return cpus


def _spent(old: dict[str, int], new: dict[str, int], limit: float) -> dict[str, int] | None:
    """Ticks spent in each state, None when the counters were reset or jumped."""
    spent = {state: n - old.get(state, 0) for state, n in new.items()}
    for state in ("idle", "iowait"):
        # The kernel may take back a little of these two.
        if -_JITTER_TICKS <= spent.get(state, 0) < 0:
            spent[state] = 0
    if min(spent.values()) < 0 or not 0 < sum(spent.values()) <= limit:
        return None
    return spent


def _shares(prefix: str, spent: dict[str, int]) -> dict[Channel, float]:
    total = sum(spent.values())
    ticks = {
        "user": spent["user"] + spent["nice"],
        "system": spent["system"] + spent.get("irq", 0) + spent.get("softirq", 0),
        "interrupt": spent.get("irq", 0) + spent.get("softirq", 0),
        "iowait": spent.get("iowait", 0),
        "steal": spent.get("steal", 0),
    }
    ticks["busy"] = ticks["user"] + ticks["system"]
    return {Channel(f"{prefix}.{name}_ratio", "ratio"): ticks[name] / total for name in _SHOWN}
