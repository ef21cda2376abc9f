"""perf: samples the processes of any server from outside, in the kernel too where the host allows it."""

from __future__ import annotations

from agents.base.runtime import Runtime
from agents.profilers.base.perf import LACKS_PERF, PERF_PATH
from agents.profilers.base.profiler import Profiler

# A machine without performance counters still has the clock; perf record would take that one silently.
_BEGIN = f"""
{PERF_PATH}
event=cpu-clock
case $(perf stat -x , -e cycles -- true 2>&1) in
  *"not supported"* | *"not counted"*) ;;
  [0-9]*) event=cycles ;;
esac
engine="perf $event"
"""

_DURING = """
perf record -q -N -k CLOCK_MONOTONIC -e "$event" -F 199 -g -p "$list" -o "$out.data" -- \\
  sh -c "$until_then" sh "$until" >/dev/null 2>"$out.err" &
"""

_END = """
[ "$seconds" = 0 ] || wait "$!" || { echo "perf could not record: $(tail -n 3 "$out.err")" >&2; exit 4; }
"""

_AFTER = f"""
{PERF_PATH}
export DEBUGINFOD_URLS=
perf script --show-lost-events -i "$out.data" >"$out.1.part" 2>"$out.err" ||
  {{ echo "perf could not read what it recorded: $(tail -n 3 "$out.err")" >&2; exit 4; }}
"""


class Perf(Profiler):
    """Weights are periods: CPU cycles, or nanoseconds of the CPU's clock where there is no counter; 199 a second.

    Stacks are found by frame pointers: functions of programs that were built without them lack their callers.
    """

    kind = "perf"
    title = "perf"
    of = "all servers; native ones tell most"
    cost = "199 interrupts a second on each CPU that the server uses"
    clock = "uptime"

    def fits(self, runtime: Runtime) -> bool:
        return True

    def lacks(self, event: str) -> str:
        return LACKS_PERF

    def begin(self, event: str) -> str:
        return _BEGIN

    def during(self, event: str) -> str:
        return _DURING

    def end(self, event: str) -> str:
        return _END

    def after(self, event: str) -> str:
        return _AFTER
