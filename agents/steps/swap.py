"""Switches swap off for a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_PROBE = """
cat "$1/swaps" 2>/dev/null
grep -s '^MemAvailable:' "$1/meminfo"
:
"""

_OFF = """
for area; do swapoff -- "$area" || exit 1; done
"""

# Areas without a priority of their own get falling negative ones in the order in which they are switched on, so all of
# them go off and on again unless each is as it was.
_ON = r"""
proc=$1
shift
state() {
  while read -r name _ _ _ priority; do
    if [ "$(printf '%b' "$name")" = "$1" ]; then echo "$priority"; return; fi
  done <"$proc/swaps"
}
same=yes
for area; do [ "$(state "${area#* }")" = "${area%% *}" ] || same=; done
[ -z "$same" ] || exit 0
for area; do
  case $(state "${area#* }") in
    '') ;;
    -*) swapoff -- "${area#* }";;
    *) [ "$(state "${area#* }")" = "${area%% *}" ] || swapoff -- "${area#* }";;
  esac
done
status=0
for area; do
  [ -z "$(state "${area#* }")" ] || continue
  case $area in
    -*) swapon -- "${area#* }" || status=1;;
    *) swapon -p "${area%% *}" -- "${area#* }" || status=1;;
  esac
done
exit $status
"""

SPARE_RATIO = 0.9
"""Swapped pages may fill this share of the available memory."""


@dataclass(frozen=True)
class _Area:
    path: str
    priority: int


class SwapStep(HostStep):
    """`enabled: false` switches every swap area off, and on again afterwards; `true` insists that the host has swap.

    The same areas come back with their priorities, in their order. How eagerly the kernel swaps is `vm.swappiness`, a
    `sysctl` step. An area's discard option is shown nowhere, so it is not put back.
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("switches swap off and on")

    kind: Literal["swap"] = "swap"
    enabled: bool

    def title(self) -> str:
        return "Swap as it is on this host" if self.enabled else "Swap off"

    def explains(self, path: str) -> bool:
        return path.startswith("proc.swaps") or "memory.swap" in path

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs)

    def parse(self, output: bytes) -> State:
        """The areas as `PRIORITY PATH` lines, highest priority first, and the used and the available memory in KiB.

        Raises ParseError at a line that is not one of /proc/swaps.
        """
        areas, used_kb, available_kb = [], 0, None
        for number, line in enumerate(output.decode("utf-8", "surrogateescape").splitlines(), start=1):
            fields = line.split()
            if not fields or fields[0] == "Filename":
                continue
            if fields[0] == "MemAvailable:":
                available_kb = fields[1]
                continue
            if len(fields) != 5 or not fields[3].isdigit() or not re.fullmatch(r"-?\d+", fields[4]):
                raise ParseError("this is no line of /proc/swaps", line=number)
            areas.append(_Area(_unescaped(fields[0]), int(fields[4])))
            used_kb += int(fields[3])
        lines = [f"{area.priority} {area.path}" for area in sorted(areas, key=lambda area: -area.priority)]
        return {"areas": "\n".join(lines), "used_kb": str(used_kb), "available_kb": available_kb}

    def wanted(self, before: State) -> State:
        return {"areas": before["areas"] if self.enabled else ""}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        areas = _areas(before)
        if self.enabled and not areas and self.unsupported == "fail":
            raise PlanError("this host has no swap", hint="Switch an area on, or set unsupported: skip on the step.")
        if self.enabled or not areas:
            return ()
        if strange := [
            area.path for area in areas if not area.path.startswith("/") or area.path.endswith(" (deleted)")
        ]:
            raise PlanError(
                f"the swap area {strange[0]} could not be switched on again: it has no path any more",
                hint="Switch it off by hand, or take the step out of the recipe.",
            )
        used_kb, available_kb = int(before["used_kb"] or 0), before["available_kb"]
        if available_kb is not None and used_kb > int(available_kb) * SPARE_RATIO:
            spare_mib = int(available_kb) // 1024
            raise PlanError(
                f"{used_kb // 1024} MiB are swapped out, and only {spare_mib} MiB of memory are available",
                hint="Free memory on the host first, or take the step out of the recipe.",
            )
        return (script(_OFF, *(area.path for area in areas), privileged=True, timeout_s=900),)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        areas = [f"{area.priority} {area.path}" for area in _areas(before)]
        if self.enabled or not areas:
            return ()
        return (script(_ON, context.procfs, *areas, privileged=True, timeout_s=900),)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ("areas",) if before["areas"] != now["areas"] else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        was, now, wanted = before["areas"] or "", after["areas"] or "", self.wanted(before)["areas"] or ""
        result: Result = "refused"
        if self.enabled and not was:
            result = "unsupported"
        elif now == wanted:
            result = "unchanged" if was == wanted else "applied"
        return (SettingOutcome("swap", _shown(wanted), _shown(was), _shown(now), result),)


def _unescaped(path: str) -> str:
    """/proc/swaps writes blanks, tabs, line ends and backslashes as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _areas(state: State) -> list[_Area]:
    lines = [line.partition(" ") for line in (state["areas"] or "").splitlines()]
    return [_Area(path, int(priority)) for priority, _, path in lines]


def _shown(areas: str) -> str:
    return (
        ", ".join(
            f"{path} (priority {priority})" for priority, _, path in (a.partition(" ") for a in areas.splitlines())
        )
        or "off"
    )
