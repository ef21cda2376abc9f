"""All settings of a host that tuning could touch, read twice: before the first change and after the last undo."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

from agents.base.command import Command, script
from agents.base.redaction import masked
from agents.base.session import Session

# Not here: which CPUs serve an interrupt (irqbalance moves them), which services run and which packages are installed
# (too much, and it changes by itself): those steps read back what they changed.
_READ = r"""
grep -rs '' /proc/sys
grep -Hs '' /sys/devices/system/cpu/online /sys/devices/system/cpu/cpu[0-9]*/online
grep -Hs '' /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo
grep -Hs '' /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor
grep -Hs '' /sys/devices/system/cpu/cpu[0-9]*/cpufreq/energy_performance_preference
grep -Hs '' /sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/mm/transparent_hugepage/defrag
grep -Hs '' /sys/kernel/mm/transparent_hugepage/shmem_enabled /sys/kernel/mm/transparent_hugepage/hugepages-*/enabled
grep -Hs '' /sys/block/[!lrz]*/queue/scheduler /sys/block/[!lrz]*/queue/read_ahead_kb
grep -Hs '' /sys/block/[!lrz]*/queue/nr_requests
sed -n 's|^\(/[^ \t]*\)[ \t].*[ \t]\(-\{0,1\}[0-9]*\)$|/proc/swaps:\1 priority \2|p' /proc/swaps 2>/dev/null | sort
exit 0
"""

VOLATILE = (
    "sysctl.dev.cdrom.*",
    "sysctl.fs.aio-nr",
    "sysctl.fs.dentry-state",
    "sysctl.fs.file-nr",
    "sysctl.fs.inode-nr",
    "sysctl.fs.inode-state",
    "sysctl.fs.quota.*",
    "sysctl.fs.binfmt_misc.*",
    "sysctl.kernel.core_modes",
    "sysctl.kernel.ns_last_pid",
    "sysctl.kernel.perf_event_max_sample_rate",
    "sysctl.kernel.pty.nr",
    "sysctl.kernel.random.*",
    "sysctl.kernel.tainted",
    "sysctl.net.netfilter.nf_conntrack_count",
    "sysctl.net.ipv*.conf.*",
    "sysctl.net.ipv*.neigh.*",
    "sysctl.net.ipv4.route.flush",
    "sysctl.vm.drop_caches",
    "sysctl.vm.stat_refresh",
)
"""Keys that change by themselves, are answers to a write, or come and go with network interfaces."""

MAX_BYTES = 4 << 20


def command() -> Command:
    """Reads every setting in one round trip; unreadable ones are left out."""
    return script(_READ, timeout_s=60)


def parse(output: bytes) -> dict[str, str]:
    """Setting -> value; a value of several lines is joined by newlines, volatile settings are left out."""
    values: dict[str, str] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        path, colon, value = line.partition(":")
        if not colon or not path.startswith("/"):
            continue
        name = _name(path)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in VOLATILE):
            continue
        value = " ".join(value.split())
        values[name] = f"{values[name]}\n{value}" if name in values else value
    return values


async def read(session: Session) -> dict[str, str]:
    """All settings of the host as they are now. CommandError when they cannot be read."""
    result = await session.run(command(), max_output_bytes=MAX_BYTES)
    return parse(result.check("Reading all settings").stdout)


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Settings that are not as before, one plain sentence each; the values of secrets are not told."""
    found = []
    for name in sorted(set(before) | set(after)):
        was, now = before.get(name), after.get(name)
        if was != now:
            found.append(f"{name} was {_shown(name, was)} and is {_shown(name, now)}")
    return tuple(found)


def _name(path: str) -> str:
    if path.startswith("/proc/sys/"):
        return "sysctl." + path.removeprefix("/proc/sys/").replace("/", ".")
    return path.lstrip("/").replace("/", ".")


def _shown(name: str, value: str | None) -> str:
    return "not there" if value is None else repr(masked(name, value))
