"""What any process really has, from /proc: limits, CPUs, arguments, tuning variables, and the JVM's final flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

PROCESS_FRAMES = """
process_frames() {
  for name in limits status cmdline environ; do cat "/proc/$1/$name" 2>/dev/null | frame "process.$name"; done
  sed q "/proc/$1/numa_maps" 2>/dev/null | frame process.numa_maps
  java=$(readlink "/proc/$1/exe")
  case ${java##*/} in java) ;; *) return 0;; esac
  cat "${java%/bin/java}/release" 2>/dev/null | frame jvm.release
  jcmd=${java%/*}/jcmd
  [ -x "$jcmd" ] || jcmd=$(command -v jcmd) || return 0
  for name in VM.flags VM.version VM.command_line; do
    timeout 20 "$jcmd" "$1" "$name" 2>/dev/null | frame "jvm.$name"
  done
}
"""
"""POSIX sh for behind `frames.FRAME`: `process_frames PID`. jcmd is asked only of a process whose program is `java`."""

_LIMITS = {
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max locked memory": "memlock_bytes",
    "Max stack size": "stack_bytes",
    "Max address space": "address_space_bytes",
    "Max core file size": "core_bytes",
}
_LIMIT_LINE = re.compile(r"(Max [a-z ]+?) {2,}(\S+) +(\S+)")
_FLAG = re.compile(r"-XX:(?:([+-])(\w+)|(\w+)=(\S*))")
ENVIRONMENT = "process.environment."
# Only what is known to change how fast a program runs: an environment may hold secrets. What a recipe sets is added.
_VARIABLE = re.compile(
    r"JAVA_HOME|JRE_HOME|J?JAVA_.*|JDK_JAVA_OPTIONS|CATALINA_.*|WLP_.*|MALLOC_.*|GLIBC_TUNABLES|LD_(?:PRELOAD|LIBRARY_PATH)"
    r"|GOMAXPROCS|GOGC|GOMEMLIMIT|OMP_.*|UV_THREADPOOL_SIZE|NODE_OPTIONS|PYTHON[A-Z]*|LANG|LC_ALL|TZ"
)


def parse_process(frames: Mapping[str, bytes]) -> dict[str, str]:
    """Flat settings (`process.limits.nofile`, `process.cpus`, `jvm.flags.MaxHeapSize`); what is unknown is absent."""
    text = {name: data.decode("utf-8", "replace") for name, data in frames.items()}
    return {
        **dict(_limits(text.get("process.limits", ""))),
        **dict(_status(text.get("process.status", ""))),
        **dict(_memory_policy(text.get("process.numa_maps", ""))),
        **{f"process.arguments[{i}]": a for i, a in enumerate(_parts(text.get("process.cmdline", "")))},
        **dict(_environment(text.get("process.environ", ""))),
        **dict(_flags(text.get("jvm.VM.flags", ""))),
        **dict(_release(text.get("jvm.release", ""))),
        **dict(_jvm(text.get("jvm.VM.version", ""), text.get("jvm.VM.command_line", ""))),
    }


def _parts(text: str) -> list[str]:
    return text.removesuffix("\0").split("\0") if text else []


def _limits(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if (match := _LIMIT_LINE.match(line)) and (name := _LIMITS.get(match[1])):
            yield f"process.limits.{name}", match[2]
            yield f"process.limits.{name}_hard", match[3]


def _status(text: str) -> Iterator[tuple[str, str]]:
    names = {"Cpus_allowed_list": "cpus", "Mems_allowed_list": "memory_nodes", "Threads": "threads"}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in names:
            yield f"process.{names[key]}", value.strip()


def _memory_policy(text: str) -> Iterator[tuple[str, str]]:
    """On which NUMA nodes its memory lies, where that is not left to the kernel."""
    policy = text.split()[1:2]
    if policy and policy != ["default"]:
        yield "process.memory_policy", policy[0]


def _environment(text: str) -> Iterator[tuple[str, str]]:
    for pair in _parts(text):
        name, equals, value = pair.partition("=")
        if equals and _VARIABLE.fullmatch(name):
            yield f"{ENVIRONMENT}{name}", value


def _flags(text: str) -> Iterator[tuple[str, str]]:
    for sign, switch, name, value in _FLAG.findall(text):
        yield (f"jvm.flags.{switch}", "true" if sign == "+" else "false") if sign else (f"jvm.flags.{name}", value)


def _release(text: str) -> Iterator[tuple[str, str]]:
    """What the file `release` of a Java installation says; a runtime without development tools has no jcmd to ask."""
    fields = dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    if version := fields.get("JAVA_RUNTIME_VERSION") or fields.get("JAVA_VERSION"):
        yield "jvm.version", version


def _jvm(version: str, command_line: str) -> Iterator[tuple[str, str]]:
    if match := re.search(r"^(.+) version (\S+)$", version, re.MULTILINE):
        yield "jvm.name", match[1]
        yield "jvm.version", match[2]
    if match := re.search(r"^jvm_args: (.*?) *$", command_line, re.MULTILINE):
        yield "jvm.arguments", match[1]
