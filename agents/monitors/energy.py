"""How much power the processors and their memory take, from the counters of RAPL in /sys/class/powercap."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

_ZONES = "/sys/class/powercap/intel-rapl:*"
_LINE = re.compile(
    r"^/sys/class/powercap/intel-rapl:([0-9]{1,4})(:[0-9]{1,4})?/(name|energy_uj|max_energy_range_uj):([a-z0-9-]{1,30})$",
    re.M | re.ASCII,
)
_PACKAGE = re.compile(r"package-[0-9]{1,4}", re.ASCII)
_POWER = ChartGroup("power", "Power", 165, sometimes=True)
WATTS = "energy.all_watts"


class EnergyMonitor(Monitor):
    """Watts of each processor package and of its memory, and all of them together. The counters are those of Intel and
    AMD; root alone may read them, and virtual machines show none. Disks, fans and the power supply are not in them."""

    kind = "energy"
    cost = "one grep over three files per package, and reading a counter wakes a core of that package"
    channels = (
        ChannelKind(r"energy\.all_watts", "watts", "{host} processors and memory", _POWER, compared="Power"),
        ChannelKind(r"energy\.(package-[0-9]+)\.watts", "watts", "{host} {1}", _POWER),
        ChannelKind(r"energy\.(dram-[0-9]+)\.watts", "watts", "{host} memory {1}", _POWER),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return f"grep -Hs '' {_ZONES}/name {_ZONES}/energy_uj {_ZONES}/max_energy_range_uj"

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        elapsed_s = now.at_s - before.at_s
        if elapsed_s <= 0:
            return {}
        old, new = _counters(before.text), _counters(now.text)
        watts: dict[str, float] = {}
        for zone, (value, range_uj) in new.items():
            if (was := old.get(zone)) is None:
                continue
            spent = value - was[0] if value >= was[0] else value - was[0] + range_uj
            if spent >= 0:  # it has begun anew and does not say where
                watts[zone] = spent / elapsed_s / 1e6
        if not any(_PACKAGE.fullmatch(zone) for zone in watts):
            return {}
        out = {Channel(f"energy.{zone}.watts", "watts"): value for zone, value in watts.items()}
        if set(watts) == set(new) | set(old):
            out[Channel(WATTS, "watts")] = sum(watts.values())
        return out


def _counters(text: str) -> dict[str, tuple[int, int]]:
    """Packages and their memory -> what was counted, and where it begins anew, in µJ. Cores are in packages."""
    zones: dict[tuple[str, str], dict[str, str]] = {}
    for package, part, field, value in _LINE.findall(text):
        zones.setdefault((package, part), {})[field] = value
    found = {}
    for (package, _), fields in zones.items():
        name = fields.get("name", "")
        name = f"dram-{package}" if name == "dram" else name
        counted, most = fields.get("energy_uj", ""), fields.get("max_energy_range_uj", "0")
        known = _PACKAGE.fullmatch(name) or name.startswith("dram-")
        if known and counted.isdigit() and most.isdigit():
            found[name] = (int(counted), int(most))
    return found
