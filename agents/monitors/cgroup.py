"""What the control group of the watched process used and waited for, with all that runs in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.monitors.base import Channel, Monitor, Reading

# Starts no program. Each line has its file before it, the first one the group: version 2, else what there is of 1.
_SCRIPT = """
show_group() {
  while IFS= read -r line; do
    path=${line#*:} && path=${path#*:}
    [ "$path" != / ] || continue
    case $line in
      0::*)
        files='cpu.stat memory.current io.stat cpu.pressure io.pressure memory.pressure'
        roots='/sys/fs/cgroup /sys/fs/cgroup/unified';;
      *:cpuacct:*|*:cpu,cpuacct:*|*:cpuacct,cpu:*)
        files=cpuacct.usage roots='/sys/fs/cgroup/cpuacct /sys/fs/cgroup/cpu,cpuacct';;
      *:memory:*) files=memory.usage_in_bytes roots=/sys/fs/cgroup/memory;;
      *) continue;;
    esac
    for root in $roots; do
      [ -e "$root$path/cgroup.procs" ] || continue
      printf 'group %s\\n' "$path"
      for file in $files; do
        [ -r "$root$path/$file" ] || continue
        while IFS= read -r line; do printf '%s %s\\n' "$file" "$line"; done <"$root$path/$file"
      done
      break
    done
  done <"$1"
}
"""

_GROUP = re.compile(r"group (\S.{0,4095})")
_NUMBER = re.compile(r"(memory\.current|memory\.usage_in_bytes|cpuacct\.usage) ([0-9]{1,20})", re.ASCII)
_CPU = re.compile(r"cpu\.stat usage_usec ([0-9]{1,20})", re.ASCII)
_IO = re.compile(r"io\.stat [0-9:]{3,20} rbytes=([0-9]{1,20}) wbytes=([0-9]{1,20})(?: .*)?", re.ASCII)
_WAITED = re.compile(r"(cpu|io|memory)\.pressure some .{1,60} total=([0-9]{1,20})", re.ASCII)

_CPUS = ChartGroup("cgroup", "Control group of the server: CPUs used", 86, sometimes=True)
_MEMORY = ChartGroup("cgroup_memory", "Control group of the server: memory", 87, sometimes=True)
_BYTES = ChartGroup("cgroup_io", "Control group of the server: what it read and wrote", 88, sometimes=True)
_WAITING = ChartGroup(
    "cgroup_pressure", "Control group of the server: share of time in which it waited", 89, sometimes=True
)


class CgroupMonitor(Monitor):
    """The group that the process is in itself: of a step `cgroup`, a service, a container, or the login.

    What waited is known of version 2 alone, what was read and written where the kernel counts it. The root group, which
    is the whole host, has no such channels.
    """

    kind = "cgroup"
    cost = "a few small files per reading and no program, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(
            r"cgroup\.cpu_ratio", "ratio", "{host} control group cpu", _CPUS, compared="CPUs of the control group"
        ),
        ChannelKind(
            r"cgroup\.memory_bytes",
            "bytes",
            "{host} control group memory",
            _MEMORY,
            compared="Memory of the control group",
        ),
        ChannelKind(r"cgroup\.(read|write)_bytes_per_s", "bytes_per_s", "{host} control group {1}", _BYTES),
        ChannelKind(r"cgroup\.(cpu|io|memory)\.waited_ratio", "ratio", "{host} control group waited for {1}", _WAITING),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return f"{_SCRIPT.strip()}\n  show_group /proc/{pids[0]}/cgroup" if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        """`cpu_ratio` is in CPUs: 1.5 = 1.5 s of CPU time per second. Nothing of a process that changed its group."""
        elapsed_s = now.at_s - before.at_s
        old_groups, old = _figures(before.text)
        groups, new = _figures(now.text)
        if elapsed_s <= 0 or groups != old_groups:
            return {}
        out: dict[Channel, float] = {}
        if "memory" in new:
            out[Channel("cgroup.memory_bytes", "bytes")] = float(new["memory"])
        for name, unit, per_s in (
            ("cpu_ratio", "ratio", 1e-9),
            ("read_bytes_per_s", "bytes_per_s", 1.0),
            ("write_bytes_per_s", "bytes_per_s", 1.0),
            *((f"{what}.waited_ratio", "ratio", 1e-6) for what in ("cpu", "io", "memory")),
        ):
            if (moved := new.get(name, -1) - old.get(name, 0)) >= 0 and name in old:
                rate = moved * per_s / elapsed_s
                out[Channel(f"cgroup.{name}", unit)] = min(1.0, rate) if name.endswith("waited_ratio") else rate
        return out


def _figures(text: str) -> tuple[tuple[str, ...], dict[str, int]]:
    """The groups, and their counters by the channel that they become: nanoseconds of CPU, bytes, microseconds."""
    groups: list[str] = []
    found: dict[str, int] = {}
    for line in text.splitlines():
        if match := _GROUP.fullmatch(line):
            groups.append(match[1])
        elif match := _NUMBER.fullmatch(line):
            found["cpu_ratio" if match[1] == "cpuacct.usage" else "memory"] = int(match[2])
        elif match := _CPU.fullmatch(line):
            found["cpu_ratio"] = int(match[1]) * 1000
        elif match := _IO.fullmatch(line):
            for name, number in (("read_bytes_per_s", match[1]), ("write_bytes_per_s", match[2])):
                found[name] = found.get(name, 0) + int(number)
        elif match := _WAITED.fullmatch(line):
            found[f"{match[1]}.waited_ratio"] = int(match[2])
    return tuple(groups), found
