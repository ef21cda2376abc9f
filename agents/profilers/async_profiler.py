"""async-profiler: samples a JVM from inside, its library loaded into the running process for the window."""

from __future__ import annotations

from agents.base.process_start import ProcessStart
from agents.profilers.base.jvm import FIND_JCMD, LACKS_JCMD
from agents.profilers.base.profiler import JVM_OPTIONS, Brought, Library, Profiler

LIBRARY = Library("async-profiler-4.5.jar", "d0184907de67ca63363f1a6333c75eb7414fb3e13c564641304fe0fdca97363e")
FILE = "libasyncProfiler.so"

# jcmd splits its arguments at commas and equal signs unless they stand in quotes of their own.
_AGENT = f"""
{FIND_JCMD}
agent() {{
  find_jcmd "$1"
  said=$(timeout 60 "$jcmd" "$1" JVMTI.agent_load "$folder/{FILE}" "'$2'" 2>&1)
  case $said in *"return code: 0"*) return 0 ;; esac
  return 1
}}
each() {{
  for pid in $pids; do agent "$pid" "$1" || return 1; done
}}
"""

# perf_events see the kernel as well; where the host does not allow them, a timer of each thread, else of the process.
_CPU = """
engine=
for try in cpu-clock:perf_events ctimer:ctimer itimer:itimer; do
  if each "start,event=${try%:*},interval=2ms"; then engine=${try#*:}; break; fi
  for pid in $pids; do agent "$pid" stop; done
done
[ -n "$engine" ] || { echo "async-profiler could not begin: $said" >&2; exit 4; }
"""

_OTHER = """
engine=EVENT
each "start,OPTIONS" || { echo "async-profiler could not begin: $said" >&2; exit 4; }
"""

_OPTIONS = {"wall": "event=wall,interval=20ms", "alloc": "event=alloc,alloc=512k", "lock": "event=lock,lock=10us"}

_END = """
for pid in $pids; do
  agent "$pid" "stop,file=$out.$pid.part,collapsed,threads" ||
    { echo "async-profiler could not write its stacks: $said" >&2; exit 4; }
done
"""

_LACKS = f"""
{LACKS_JCMD}
case $(uname -m) in
  x86_64 | aarch64) ;;
  *) echo "it has no library for $(uname -m)|Take the profiler jfr or perf." ;;
esac
"""


class AsyncProfiler(Profiler):
    """Weights are samples: one each 2 ms of a thread's CPU time (cpu), 20 ms of any thread (wall), 512 kB that are
    allocated (alloc), 10 us that a thread waits for a lock (lock)."""

    kind = "async-profiler"
    title = "async-profiler"
    of = "JVMs"
    events = ("cpu", "wall", "alloc", "lock")
    cost = "one signal to a thread for each 2 ms of its CPU time, about 1 %"
    brings = (Brought(LIBRARY, f"linux-{{arch}}/{FILE}", FILE),)

    def fits(self, kind: str, *, is_jvm: bool) -> bool:
        return is_jvm

    def occupies(self, event: str) -> frozenset[str]:
        return frozenset({"async-profiler"} | ({"samples"} if event in ("cpu", "wall") else set()))

    def lacks(self, event: str) -> str:
        return _LACKS

    def prepared(self, launch: ProcessStart, folder: str) -> ProcessStart:
        return launch.with_(jvm_options=(*launch.jvm_options, *JVM_OPTIONS))

    def begin(self, event: str) -> str:
        if event == "cpu":
            return _AGENT + _CPU
        return _AGENT + _OTHER.replace("EVENT", event).replace("OPTIONS", _OPTIONS[event])

    def end(self, event: str) -> str:
        return _END
