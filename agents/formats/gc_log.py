"""The log of a JVM's garbage collector: how a private instance has HotSpot's unified logging write one, and its pauses.

The unified log of Java 9 and later. A Java that does not take the option (8, OpenJ9) is started without it.
What else it tells over time is in `agents.formats.jvm_log`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.formats.jvm_log import unix_s

MAX_PAUSES = 20_000
"""The newest so many are read; more than 300 per second of a minute's window are no server's normal state."""

GC_LOG_OPTION = """
# gc_log_option JAVA FILE: prints the option that has JAVA log collections and safepoints, nothing when it knows none.
gc_log_option() {
  (
    unset JDK_JAVA_OPTIONS JAVA_TOOL_OPTIONS _JAVA_OPTIONS
    "$1" -Xlog:gc*,safepoint:file=/dev/null:utctime,level,tags:filecount=0 -version
  ) >/dev/null 2>&1 || return 0
  printf '%s' "-Xlog:gc*,safepoint:file=$2:utctime,level,tags:filecount=2,filesize=32m"
}
"""
"""POSIX sh. Two old files of 32 MB are kept, so a long run fills no disk. `-Xlog:disable` behind it switches it off."""

# The oldest files first, but times decide the order: the JVM numbers them in rotation.
_READ = """
[ -f "$1" ] || exit 3
grep -hsE 'Pause .*[0-9]ms$' -- "$1".? "$1" | sort -k1,1 -s | tail -n "$2"
grep -hsE 'Total: [0-9]+ ns$|were stopped: |Concurrent cleanup |(Garbage|Minor|Major) Collection ' -- "$1".? "$1" |
  sort -k1,1 -s | tail -n "$2"
"""

_PAUSE = re.compile(
    r"^\[([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}\+0000)\]\[info *\]\[gc[a-z, ]{0,60}\] "
    r"GC\([0-9]{1,10}\) (?:[YyOo]: )?Pause (.{1,200}) ([0-9]{1,9}\.[0-9]{1,6})ms$",
    re.ASCII | re.MULTILINE,
)


@dataclass(frozen=True)
class GcPause:
    """A stop of the whole JVM. `at_unix_s` is its end by the host's clock; `full`: all of the heap was collected."""

    at_unix_s: float
    pause_ms: float
    full: bool


def read_command(path: str) -> Command:
    """Prints the lines of the pauses, oldest first, then those of safepoints and of concurrent collections; exit
    status 3 where there is no log."""
    return script(_READ, path, str(MAX_PAUSES), timeout_s=60)


def parse_pauses(text: str) -> list[GcPause]:
    """The pauses, in the order of the lines; what is no pause is passed by."""
    return [
        GcPause(at_unix_s, float(pause_ms), kind.startswith("Full"))
        for at, kind, pause_ms in _PAUSE.findall(text)
        if (at_unix_s := unix_s(at)) is not None
    ]
