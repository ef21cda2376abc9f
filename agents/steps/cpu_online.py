"""Puts exactly the named CPUs of the host online."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator

from agents.base.command import Command, script
from agents.base.cpuset import CpuSet, format_cpus, parse_cpus
from agents.base.errors import ParseError, PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_PROBE = """
cd "$1/devices/system/cpu" || exit 1
printf 'listed %s\\npresent %s\\nswitchable ' "$(cat online)" "$(cat present)"
on=
for file in cpu[0-9]*/online; do
  [ -e "$file" ] || continue
  cpu=${file%/online}
  printf '%s,' "${cpu#cpu}"
  [ "$(cat "$file")" != 1 ] || on=$on${cpu#cpu},
done
printf '\\non %s\\n' "$on"
"""

# Writes only what differs: the kernel does real work for each write, and both directions may be repeated.
_SWITCH = """
cd "$1/devices/system/cpu" || exit 1
shift
status=0
for pair; do
  file=cpu${pair%%=*}/online value=${pair#*=}
  if [ "$(cat "$file")" != "$value" ]; then printf '%s\\n' "$value" >"$file" || status=1; fi
done
exit $status
"""


class CpuOnlineStep(HostStep):
    """Puts the CPUs in `online` online and all others offline."""

    sets_clock: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights("switches CPUs off and on", data=("online",))

    kind: Literal["cpu_online"] = "cpu_online"
    online: CpuSet

    @field_validator("online")
    @classmethod
    def _some(cls, online: str) -> str:
        if not online:
            raise ValueError("name at least one CPU that stays online")
        return online

    def title(self) -> str:
        return f"CPUs {self.online} online, all others offline"

    def explains(self, path: str) -> bool:
        return ("cpu" in path and path.rpartition(".")[2] in ("online", "offline")) or path == "process.cpus"

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.sysfs)

    def parse(self, output: bytes) -> State:
        """A CPU with an `online` file of its own is as that file says; the summary counts for those that have none.

        Raises ParseError when a list is missing or is none.
        """
        fields = dict(line.partition(" ")[::2] for line in output.decode("utf-8", "replace").splitlines())
        try:
            listed, present, switchable, on = (
                set(parse_cpus(fields[key])) for key in ("listed", "present", "switchable", "on")
            )
        except (KeyError, ValueError) as error:
            raise ParseError(f"the CPU lists of this host cannot be read: {error}") from None
        lists = {"online": (listed - switchable) | on, "present": present, "switchable": switchable}
        return {key: format_cpus(list(cpus)) for key, cpus in lists.items()}

    def wanted(self, before: State) -> State:
        return {"online": self.online}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        missing = self._missing(before)
        if missing and self.unsupported == "skip":
            return ()
        if missing:
            raise PlanError(
                f"CPUs {missing} do not exist on this host; it has {before['present']}",
                hint="Name CPUs of this host, or set unsupported: skip.",
            )
        online, wanted, switchable = _set(before, "online"), set(parse_cpus(self.online)), _set(before, "switchable")
        if fixed := (online ^ wanted) - switchable:
            raise PlanError(
                f"CPU {format_cpus(list(fixed))} of this host cannot be switched (it has no 'online' file)",
                hint=f"Keep CPU {format_cpus(list(fixed))} as it is and choose among {before['switchable'] or 'none'}.",
            )
        return _switch(context, wanted, switchable) if online != wanted else ()

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return _switch(context, _set(before, "online"), _set(before, "switchable"))

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ("online",) if before["online"] != now["online"] else ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        if missing := self._missing(before):
            detail = f"CPUs {missing} do not exist on this host"
            return (SettingOutcome("online", self.online, before["online"], after["online"], "unsupported", detail),)
        return super().outcomes(before, after)

    def _missing(self, before: State) -> str:
        return format_cpus(list(set(parse_cpus(self.online)) - _set(before, "present")))


def _set(state: State, key: str) -> set[int]:
    return set(parse_cpus(state[key] or ""))


def _switch(context: StepContext, online: set[int], switchable: set[int]) -> tuple[Command, ...]:
    # On before off, so that the host never has fewer CPUs than both sets share.
    pairs = [f"{cpu}=1" for cpu in sorted(switchable & online)] + [f"{cpu}=0" for cpu in sorted(switchable - online)]
    return (script(_SWITCH, context.sysfs, *pairs, privileged=True, timeout_s=180),) if pairs else ()
