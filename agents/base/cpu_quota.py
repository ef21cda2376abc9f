"""How much CPU time a process may use by its control groups (a container, a slice), and how often that stopped it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Walks from the process's own group to the root of the hierarchy, because every group above it may have a limit, too.
# In a container the path may not exist below what is mounted there; then what is mounted is the container's own.
SCRIPT = """
show_cpu_limits() {
  while IFS= read -r line; do
    path=${line#*:} && path=${path#*:}
    case $line in
      0::*) roots='/sys/fs/cgroup /sys/fs/cgroup/unified';;
      *:cpu:*|*:cpu,*:*|*,cpu:*|*,cpu,*:*) roots='/sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct';;
      *) continue;;
    esac
    for root in $roots; do
      [ -e "$root/cgroup.procs" ] || continue
      here=${path%/}
      while :; do
        quota='' period=''
        if [ -r "$root$here/cpu.max" ]; then read -r quota period <"$root$here/cpu.max"
        elif [ -r "$root$here/cpu.cfs_quota_us" ]; then
          read -r quota <"$root$here/cpu.cfs_quota_us"
          read -r period <"$root$here/cpu.cfs_period_us"
        fi
        case $quota in
          ''|max|-*) ;;
          *)
            printf 'limit %s %s %s\\n' "$quota" "$period" "${here:-/}"
            while read -r line; do printf '%s\\n' "$line"; done <"$root$here/cpu.stat";;
        esac
        [ -n "$here" ] || break
        here=${here%/*}
      done
      break
    done
  done <"$1"
}
"""
"""Defines `show_cpu_limits FILE` for a file such as /proc/self/cgroup; it starts no program."""

_LIMIT = re.compile(r"limit ([0-9]{1,15}) ([0-9]{1,15}) (\S.{0,4095})", re.ASCII)
_COUNTER = re.compile(r"(nr_periods|nr_throttled) ([0-9]{1,19})", re.ASCII)


@dataclass(frozen=True)
class CpuLimit:
    """One group's limit in CPUs (1.5 = 1.5 s of CPU time per second), and since the group was made: in how many of its
    periods it asked for CPU time, and in how many it was stopped because it had used up its share."""

    group: str
    cpus: float
    periods: int = 0
    throttled: int = 0


def parse_limits(text: str) -> tuple[CpuLimit, ...]:
    """The limits in the output of `show_cpu_limits`, the process's own group first; () when there is none."""
    found: list[CpuLimit] = []
    counts: dict[str, int] = {}
    for line in reversed(text.splitlines()):  # the counters stand below their limit
        if counter := _COUNTER.fullmatch(line.strip()):
            counts[counter[1]] = int(counter[2])
        elif limit := _LIMIT.fullmatch(line.strip()):
            if int(limit[2]) > 0:
                cpus = int(limit[1]) / int(limit[2])
                found.append(CpuLimit(limit[3], cpus, counts.get("nr_periods", 0), counts.get("nr_throttled", 0)))
            counts = {}
    return tuple(reversed(found))
