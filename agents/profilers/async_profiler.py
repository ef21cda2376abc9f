"""async-profiler: samples a JVM from inside, its library loaded into the running process for the window."""

from __future__ import annotations

from agents.base.process_start import ProcessStart
from agents.base.runtime import Runtime
from agents.profilers.base.jvm import FIND_JCMD, LACKS_HOTSPOT
from agents.profilers.base.profiler import JVM_OPTIONS, Brought, Library, Profiler

LIBRARY = Library("async-profiler-4.5.jar", "d0184907de67ca63363f1a6333c75eb7414fb3e13c564641304fe0fdca97363e")
FILE = "libasyncProfiler.so"

LOOP_S = 2
"""Where there is no jcmd, how much each of the files holds that the library writes one after the other."""

# Decides on the host, as the server starts: a JRE has no jcmd, so its JVM begins with the library in it.
_PREFIX = f"""
folder=$1 options=$2
shift 2
java=$(readlink -f "$(command -v "${{JAVA_HOME:+$JAVA_HOME/bin/}}java")")
if [ ! -x "${{java%/*}}/jcmd" ] && ! command -v jcmd >/dev/null; then
  agent="-agentpath:$folder/{FILE}=start,$options,loop={LOOP_S}s,collapsed,threads,file=$folder/loop-%p-%t"
  export JDK_JAVA_OPTIONS="${{JDK_JAVA_OPTIONS:+$JDK_JAVA_OPTIONS }}\\"$agent\\""
  : >"$folder/loops"
fi
exec "$@"
"""

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
new_loop() {{
  for file in "$folder"/loop-*; do [ ! "$file" -nt "$out.begun" ] || return 0; done
  return 1
}}
"""

# The window begins with the next file.
_LOOPS = """
  : >"$out.begun"
  tries=100
  until new_loop; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "async-profiler writes nothing: did the JVM start with it?" >&2; exit 4; }
    sleep 0.1
  done
  : >"$out.begun"
"""

# perf_events see the kernel as well; where the host does not allow them, a timer of each thread, else of the process.
_CPU = """
engine=
if [ -e "$folder/loops" ]; then
LOOPS
  engine=ctimer
  for pid in $pids; do
    case $(ls -l "/proc/$pid/fd") in *perf_event*) engine=perf_events ;; esac
  done
else
  for try in cpu-clock:perf_events ctimer:ctimer itimer:itimer; do
    if each "start,event=${try%:*},interval=10ms"; then engine=${try#*:}; break; fi
    for pid in $pids; do agent "$pid" stop; done
  done
fi
[ -n "$engine" ] || { echo "async-profiler could not begin: $said" >&2; exit 4; }
"""

_OTHER = """
engine=EVENT
if [ -e "$folder/loops" ]; then
LOOPS
else
  each "start,OPTIONS" || { echo "async-profiler could not begin: $said" >&2; exit 4; }
fi
"""

_OPTIONS = {
    "cpu": "event=cpu,interval=10ms",
    "wall": "event=wall,interval=20ms",
    "alloc": "event=alloc,alloc=512k",
    "lock": "event=lock,lock=10us",
}

_END = """
if [ -e "$folder/loops" ]; then
  : >"$out.ended"
  for pid in $pids; do
    for file in "$folder/loop-$pid-"*; do
      if [ "$file" -nt "$out.begun" ] && [ ! "$file" -nt "$out.ended" ]; then cat "$file"; fi
    done >"$out.$pid.part"
  done
else
  for pid in $pids; do
    agent "$pid" "stop,file=$out.$pid.part,collapsed,threads" ||
      { echo "async-profiler could not write its stacks: $said" >&2; exit 4; }
  done
fi
"""

_LACKS = f"""
{LACKS_HOTSPOT}
case $(uname -m) in
  x86_64 | aarch64) ;;
  *) echo "it has no library for $(uname -m)|Take the profiler jfr or perf." ;;
esac
"""


class AsyncProfiler(Profiler):
    """Weights are samples: one each 10 ms of a thread's CPU time (cpu), 20 ms of any thread (wall), 512 kB that are
    allocated (alloc), 10 us that a thread waits for a lock (lock)."""

    kind = "async-profiler"
    title = "async-profiler"
    of = "JVMs"
    events = ("cpu", "wall", "alloc", "lock")
    cost = "one signal to a thread for each 10 ms of its CPU time, and loading the library at the start of the window"
    brings = (Brought(LIBRARY, f"linux-{{arch}}/{FILE}", FILE),)

    def fits(self, runtime: Runtime) -> bool:
        return runtime == "jvm"

    def occupies(self, event: str) -> frozenset[str]:
        return frozenset({"async-profiler"} | ({"samples"} if event in ("cpu", "wall") else set()))

    def lacks(self, event: str) -> str:
        return _LACKS

    def prepared(self, launch: ProcessStart, folder: str, event: str) -> ProcessStart:
        prefix = ("sh", "-c", _PREFIX, "sh", folder, _OPTIONS[event])
        return launch.with_(jvm_options=(*launch.jvm_options, *JVM_OPTIONS), prefix=(*launch.prefix, *prefix))

    def begin(self, event: str) -> str:
        text = _CPU if event == "cpu" else _OTHER.replace("EVENT", event).replace("OPTIONS", _OPTIONS[event])
        return _AGENT + text.replace("LOOPS", _LOOPS)

    def end(self, event: str) -> str:
        return _END
