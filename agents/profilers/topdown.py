"""Counters of the CPU by perf stat: instructions per cycle, where cycles were lost, misses, faults and switches."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.base.errors import ParseError
from agents.base.runtime import Runtime
from agents.profilers.base.perf import LACKS_PERF, PERF_PATH
from agents.profilers.base.profiler import Profiler

NO_PMU = "This host has no performance counters (PMU), as most virtual machines: it tells faults and switches alone."
_HARDWARE = (
    "cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses", "dTLB-loads",
    "dTLB-load-misses", "iTLB-load-misses", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound",
    "topdown-be-bound",
)  # fmt: skip
_SOFTWARE = ("task-clock", "page-faults", "major-faults", "context-switches", "cpu-migrations")

# One that perf does not know would end it.
_BEGIN = f"""
{PERF_PATH}
events={",".join(_SOFTWARE)}
for event in {" ".join(_HARDWARE)}; do
  case $(perf stat -x , -e "$event" -- true 2>&1) in [0-9]*) events=$events,$event ;; esac
done
engine="perf stat"
"""

_DURING = """
perf stat -x , -e "$events" -p "$list" -o "$out.1.part" -- sh -c "$until_then" sh "$until" \\
  >/dev/null 2>"$out.err" &
"""

_END = """
[ "$seconds" = 0 ] || wait "$!" || { echo "perf could not count: $(tail -n 3 "$out.err")" >&2; exit 4; }
"""

_LINE = re.compile(r"^([0-9.]{1,24}),[^,]*,([A-Za-z0-9-]{1,40})(?::[a-z]{1,4})?,", re.MULTILINE)


def read_counts(text: str) -> dict[str, float]:
    """Event -> how often it was counted (task-clock: milliseconds) from `perf stat -x ,`; what was not is absent.

    ParseError when there is none at all.
    """
    found = {event: float(value) for value, event in _LINE.findall(text) if value.count(".") <= 1 and value != "."}
    if not found:
        raise ParseError("this is not what perf stat -x , writes")
    return found


def figures_of(counts: Mapping[str, float]) -> dict[str, float]:
    """Ratios and rates from the counts, units in their names; what the host does not count is absent.

    The four top-down ratios are of all slots in which the CPU could have begun an instruction, and add up to 1; rates
    are per second of the server's CPU time.
    """
    found = {
        "instructions_per_cycle": _share(counts, "instructions", "cycles"),
        "branch_misses_ratio": _share(counts, "branch-misses", "branches"),
        "cache_misses_ratio": _share(counts, "cache-misses", "cache-references"),
        "dtlb_misses_ratio": _share(counts, "dTLB-load-misses", "dTLB-loads"),
    }
    slots = {name: counts.get(f"topdown-{name}") for name in ("retiring", "bad-spec", "fe-bound", "be-bound")}
    if all(value is not None for value in slots.values()) and (whole := sum(value or 0 for value in slots.values())):
        words = {"fe-bound": "frontend_bound", "be-bound": "backend_bound", "bad-spec": "bad_speculation"}
        found |= {f"{words.get(name, name)}_ratio": (value or 0) / whole for name, value in slots.items()}
    if busy_s := counts.get("task-clock", 0.0) / 1000:
        for event in ("page-faults", "major-faults", "context-switches", "cpu-migrations", "iTLB-load-misses"):
            if event in counts:
                found[f"{event.replace('-', '_').lower()}_per_cpu_s"] = counts[event] / busy_s
    return {name: value for name, value in found.items() if value is not None}


def _share(counts: Mapping[str, float], part: str, whole: str) -> float | None:
    return counts[part] / counts[whole] if part in counts and counts.get(whole) else None


class Topdown(Profiler):
    """Counts for the whole server, no functions. A virtual machine seldom has hardware counters; it says so."""

    kind = "topdown"
    title = "perf stat"
    of = "all servers"
    cost = "saving its counters at each switch of threads"
    counts_only = True
    events = ("counters",)

    def fits(self, runtime: Runtime) -> bool:
        return True

    def occupies(self, event: str) -> frozenset[str]:
        return frozenset({"counters"})

    def lacks(self, event: str) -> str:
        return LACKS_PERF

    def begin(self, event: str) -> str:
        return _BEGIN

    def during(self, event: str) -> str:
        return _DURING

    def end(self, event: str) -> str:
        return _END
