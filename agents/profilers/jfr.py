"""JDK Flight Recorder: the JVM samples itself; what it wrote is converted where BenchHub runs."""

from __future__ import annotations

from agents.base.process_start import ProcessStart
from agents.base.runtime import Runtime
from agents.profilers.base.jvm import FIND_JCMD, LACKS_JCMD
from agents.profilers.base.profiler import JVM_OPTIONS, Library, Profiler

CONVERTER = Library("jfr-converter-4.5.jar", "d8a5452b26adb11a2a0abf0c53799a6fd60dbccb0647efa5a734e3c46ced3df4")
NAME = "benchhub"

SETTINGS = "benchhub.jfc"

# Only what samples running Java code. The JDK's own `profile` also takes threads that wait inside native code for
# threads at work, rewrites classes to time their reads and writes, and takes seconds to begin.
_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
  <event name="jdk.ExecutionSample">
    <setting name="enabled">true</setting>
    <setting name="period">10 ms</setting>
  </event>
</configuration>
"""

# One jcmd for both, as each is a JVM of its own that has to start on a busy host.
_BEGIN = f"""
{FIND_JCMD}
printf '%s\\n' "JFR.configure repositorypath='$folder'" \\
  "JFR.start name={NAME} settings='$folder/{SETTINGS}'" >"$folder/jfr-start"
for pid in $pids; do
  find_jcmd "$pid"
  said=$(timeout 60 "$jcmd" "$pid" -f "$folder/jfr-start" 2>&1)
  case $said in *"Started recording"*) ;; *) echo "the JVM did not begin to record: $said" >&2; exit 4 ;; esac
done
engine=jfr
"""

_END = f"""
for pid in $pids; do
  find_jcmd "$pid"
  said=$(timeout 120 "$jcmd" "$pid" JFR.stop name={NAME} filename="$out.$pid.part" 2>&1)
  [ -s "$out.$pid.part" ] || {{ echo "the JVM did not write what it recorded: $said" >&2; exit 4; }}
done
"""


class Jfr(Profiler):
    """Weights are samples of threads that run Java code, every 10 ms, at most five threads at a time.

    It sees neither native code nor the kernel: their CPU time falls to the Java functions, by their shares.
    """

    kind = "jfr"
    title = "JDK Flight Recorder"
    of = "JVMs"
    cost = "a look at five threads at most each 10 ms"
    converter = CONVERTER
    clock = "unix"

    def fits(self, runtime: Runtime) -> bool:
        return runtime == "jvm"

    def lacks(self, event: str) -> str:
        return LACKS_JCMD

    def prepared(self, launch: ProcessStart, folder: str, event: str) -> ProcessStart:
        return launch.with_(jvm_options=(*launch.jvm_options, *JVM_OPTIONS))

    def files(self) -> dict[str, str]:
        return {SETTINGS: _SETTINGS}

    def begin(self, event: str) -> str:
        return _BEGIN

    def end(self, event: str) -> str:
        return _END
