"""A control group for the server: how much CPU time and memory it may use."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

PERIOD_US = 100_000
NO_CONTROLLER = "the control groups of this host do not offer it"

# `root CONTROLLER` is where the kernel has that controller: in the one tree of version 2, or in a tree of its own.
_PLACES = """
sys=$1/fs/cgroup name=$2
root() {
  if [ -f "$sys/cgroup.controllers" ]; then
    case " $(cat "$sys/cgroup.controllers") " in *" $1 "*) echo "$sys";; esac
  else
    for tree in "$sys/$1" "$sys/cpu,cpuacct" "$sys/unified"; do
      case $1:$tree in
        cpu:*/unified | memory:*/unified)
          case " $(cat "$tree/cgroup.controllers" 2>/dev/null) " in *" $1 "*) echo "$tree"; return;; esac;;
        cpu:*) [ ! -f "$tree/cpu.cfs_quota_us" ] || { echo "$tree"; return; };;
        memory:*/memory) [ ! -f "$tree/memory.limit_in_bytes" ] || { echo "$tree"; return; };;
      esac
    done
  fi
}
"""

_PROBE = (
    _PLACES
    + r"""
for controller in cpu memory; do
  tree=$(root $controller)
  [ -n "$tree" ] || continue
  echo "$controller=$tree"
  own=$tree/$name
  [ -d "$own" ] || continue
  case $controller in
    cpu)
      if [ -f "$own/cpu.max" ]; then echo "cpu.max=$(cat "$own/cpu.max")"
      elif [ -f "$own/cpu.cfs_quota_us" ]; then
        quota=$(cat "$own/cpu.cfs_quota_us")
        case $quota in -1) quota=max;; esac
        echo "cpu.max=$quota $(cat "$own/cpu.cfs_period_us")"
      fi;;
    memory)
      for file in memory.max memory.limit_in_bytes; do
        [ ! -f "$own/$file" ] || { echo "memory.max=$(cat "$own/$file")"; break; }
      done;;
  esac
done
:
"""
)

_APPLY = (
    _PLACES
    + """
cpu=$3 period=$4 memory=$5
made() {
  tree=$(root "$1")
  [ -n "$tree" ] || return 1
  if [ -f "$tree/cgroup.subtree_control" ]; then
    case " $(cat "$tree/cgroup.subtree_control") " in *" $1 "*) ;; *) echo "+$1" >"$tree/cgroup.subtree_control";; esac
  fi
  mkdir -p "$tree/$name"
}
if [ -n "$cpu" ] && made cpu; then
  if [ -f "$tree/$name/cpu.max" ]; then echo "$cpu $period" >"$tree/$name/cpu.max"
  else
    echo "$period" >"$tree/$name/cpu.cfs_period_us"
    echo "$cpu" >"$tree/$name/cpu.cfs_quota_us"
  fi
fi
if [ -n "$memory" ] && made memory; then
  if [ -f "$tree/$name/memory.max" ]; then echo "$memory" >"$tree/$name/memory.max"
  else echo "$memory" >"$tree/$name/memory.limit_in_bytes"
  fi
fi
:
"""
)

# What is still in the group goes up to its parent, as a group with processes cannot be removed.
_REVERT = (
    _PLACES
    + """
status=0
for controller in cpu memory; do
  tree=$(root $controller)
  [ -n "$tree" ] && [ -d "$tree/$name" ] || continue
  while read -r pid; do echo "$pid" >"$tree/cgroup.procs" 2>/dev/null; done <"$tree/$name/cgroup.procs"
  rmdir "$tree/$name" || status=1
done
exit $status
"""
)

_MOVE = (
    _PLACES
    + """
pid=$3
shift 3
for controller; do
  tree=$(root "$controller")
  [ -d "$tree/$name" ] || continue  # a host without the controller, where the step goes on
  echo "$pid" >"$tree/$name/cgroup.procs" || { echo "cannot join the control group $tree/$name" >&2; exit 78; }
done
"""
)

# The server's own process asks root to move it, and becomes the server then: what it starts stays in the group.
_JOIN = """
move=$1 run=${PWD%/*} own=${PWD##*/instance} controllers=$2
shift 2
case $own in -[a-z]*) own=${own#-}; own=-${own%%-*};; *) own=;; esac  # of a further member: its role
if [ "$(id -u)" = 0 ]; then sudo=; else sudo='sudo -n'; fi
$sudo sh -c "$move" sh /sys "benchhub-${run##*/}$own" $$ $controllers || exit 78
exec "$@"
"""


class CgroupStep(HostStep):
    """Gives the server a control group of its own, with all that it starts: `cpus` is the CPU time that it may use per
    second, in CPUs (1.5), `memory_max_bytes` its memory. Instances of one server share the group.

    Version 2 of control groups or version 1, whichever the host has; systemd leaves a group alone that is not its own.
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("limits the server's CPU time and memory")

    kind: Literal["cgroup"] = "cgroup"
    cpus: float | None = Field(None, ge=0.01, le=4096)
    memory_max_bytes: int | None = Field(None, ge=1 << 20, le=1 << 50)

    @model_validator(mode="after")
    def _some(self) -> CgroupStep:
        if self.cpus is None and self.memory_max_bytes is None:
            raise ValueError("give at least one of cpus, memory_max_bytes")
        return self

    def title(self) -> str:
        told = [f"{self.cpus:g} CPUs"] if self.cpus is not None else []
        told += [f"{self.memory_max_bytes} bytes of memory"] if self.memory_max_bytes is not None else []
        return f"Control group of the server: at most {' and '.join(told)}"

    def explains(self, path: str) -> bool:
        return "cpu_quota" in path or "cgroup" in path

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        words = ("sh", "-c", _JOIN, "sh", _MOVE, " ".join(self._controllers()))
        return launch.with_(prefix=(*words, *launch.prefix))

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.sysfs, _group(context))

    def parse(self, output: bytes) -> State:
        """`cpu.max` as "QUOTA PERIOD" and `memory.max`, None where there is no such group; and under `cpu` and `memory`
        where the kernel has these controllers, None where it has not.
        """
        fields = dict(line.partition("=")[::2] for line in output.decode("utf-8", "replace").splitlines())
        names = [name for controller in self._controllers() for name in (controller, f"{controller}.max")]
        return {name: fields.get(name) for name in names}

    def wanted(self, before: State) -> State:
        return {f"{controller}.max": value for controller, value in self._asked().items()}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        lacking = [name for name in self._controllers() if before[name] is None]
        if lacking and self.unsupported == "fail":
            raise PlanError(
                f"{' and '.join(lacking)}: {NO_CONTROLLER}",
                hint="It takes control groups of version 2, or these controllers of version 1 below /sys/fs/cgroup.",
            )
        can = [name for name in self._controllers() if name not in lacking]
        if all(before[f"{name}.max"] == self._asked()[name] for name in can):
            return ()
        asked = self._asked()
        quota, _, period = asked.get("cpu", "").partition(" ")
        words = (context.sysfs, _group(context), quota, period, asked.get("memory", ""))
        return (script(_APPLY, *words, privileged=True),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return (script(_REVERT, context.sysfs, _group(context), privileged=True),)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if key.endswith(".max"))

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        found = []
        for controller, wanted in self._asked().items():
            name = f"{controller}.max"
            now = after.get(name)
            result: Result = "applied" if now == wanted else "refused"
            detail = ""
            if after.get(controller) is None:
                result, detail = "unsupported", NO_CONTROLLER
            found.append(SettingOutcome(name, wanted, before.get(name), now, result, detail))
        return tuple(found)

    def _controllers(self) -> tuple[str, ...]:
        return tuple(self._asked())

    def _asked(self) -> dict[str, str]:
        """What is written, as the kernel will show it: the memory in whole pages."""
        asked = {}
        if self.cpus is not None:
            asked["cpu"] = f"{round(self.cpus * PERIOD_US)} {PERIOD_US}"
        if self.memory_max_bytes is not None:
            asked["memory"] = str(self.memory_max_bytes // 4096 * 4096)
        return asked


def _group(context: StepContext) -> str:
    """The group's name: that of the run's directory, in which the instance lies, and of a further member its role.

    Members of a system may share a host, and so that directory.
    """
    instance = PurePosixPath(context.instance)
    member = re.fullmatch(r"instance(-[a-z][a-z0-9_]*)?(?:-\d+)?", instance.name)
    return f"benchhub-{instance.parent.name}{(member and member[1]) or ''}"
