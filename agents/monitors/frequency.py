"""How fast the CPUs run, and how often heat slowed them down, from /sys/devices/system/cpu."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, OfTheSet, Reading

EVERY = 5
"""Only each fifth reading looks: on some machines the clock of a CPU is read on that CPU, which wakes it."""

_CPUS = "/sys/devices/system/cpu/cpu[0-9]*"
_KHZ = re.compile(r"^/sys/devices/system/cpu/cpu([0-9]{1,5})/cpufreq/scaling_cur_freq:([0-9]{1,9})$", re.M | re.ASCII)
_COUNT = re.compile(
    r"^/sys/devices/system/cpu/cpu[0-9]{1,5}/thermal_throttle/(?:core|package)_throttle_count:([0-9]{1,15})$",
    re.M | re.ASCII,
)

_SET = ChartGroup("clock", "Clock of the CPUs", 150, sometimes=True)
_CLOCKS = ChartGroup("clocks", "Clock of each CPU", 155, sometimes=True)
_HEAT = ChartGroup("heat", "How often heat slowed CPUs down since the host booted", 160, sometimes=True)


class FrequencyMonitor(Monitor):
    """MHz of each CPU and of all, and the throttle events since the host booted. Virtual machines mostly show neither.

    What the kernel calls the current frequency is the last one it asked for on old drivers, a measured one on new ones.
    """

    kind = "frequency"
    cost = "at each fifth reading one grep over three files per CPU: 1 ms of one core per 64 CPUs"
    channels = (
        ChannelKind(r"cpu_set\.mean_mhz", "mhz", "{host} cpu set mean mhz", _SET),
        ChannelKind(r"frequency\.mean_mhz", "mhz", "{host} all CPUs, mean", _CLOCKS),
        ChannelKind(r"frequency\.([0-9]+)\.mhz", "mhz", "{host} CPU {1}", _CLOCKS),
        ChannelKind(r"frequency\.throttle_count", "count", "{host} CPUs slowed down by heat", _HEAT),
    )
    of_the_set = (OfTheSet("cpu_set.mean_mhz", "mhz", "frequency.{}.mhz", "frequency.mean_mhz"),)

    def snippet(self, pids: Sequence[int]) -> str:
        files = f"{_CPUS}/cpufreq/scaling_cur_freq {_CPUS}/thermal_throttle/*_throttle_count"
        return f"seldom=$((${{seldom:-0}} % {EVERY} + 1)); [ $seldom -ne 1 ] || grep -Hs '' {files}"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        out: dict[Channel, float] = {}
        mhz = {int(cpu): int(khz) / 1000 for cpu, khz in _KHZ.findall(now.text)}
        for cpu, value in mhz.items():
            out[Channel(f"frequency.{cpu}.mhz", "mhz")] = value
        if mhz:
            out[Channel("frequency.mean_mhz", "mhz")] = sum(mhz.values()) / len(mhz)
        if counts := _COUNT.findall(now.text):
            out[Channel("frequency.throttle_count", "count")] = float(sum(map(int, counts)))
        return out
