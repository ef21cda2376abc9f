"""Which CPUs serve the interrupts of a device."""

from __future__ import annotations

import fnmatch
import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.cpuset import CpuSet, format_cpus, parse_cpus
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

# The counts of a large host fill megabytes: they are cut off on the host.
_NAMES = r"""sed -n 's/^ *\([0-9]\{1,\}\): *\([0-9]\{1,\} \{1,\}\)*/\1 /p' "$1/interrupts" | tr -s ' ' """

_PROBE = rf"""
{_NAMES} 2>/dev/null | sed 's/^/irq /'
grep -Hs '' "$1"/irq/*/smp_affinity_list /dev/null | sed 's,.*/irq/\([0-9]*\)/smp_affinity_list:,affinity \1 ,'
grep -lsx irqbalance "$1"/[0-9]*/comm /dev/null | sed '1q' | sed 's/.*/irqbalance/'
:
"""

# An interrupt whose device is gone, or whose number belongs to another device by now, is left alone.
_WRITE = rf"""
names=$({_NAMES})
proc=$1
shift
while [ $# -ge 3 ]; do
  irq=$1 name=$2 cpus=$3
  shift 3
  printf '%s\n' "$names" | grep -qxF "$irq $name" || continue
  file=$proc/irq/$irq/smp_affinity_list
  [ "$(cat "$file")" = "$cpus" ] || printf '%s\n' "$cpus" >"$file" || echo "the kernel keeps IRQ $irq where it is" >&2
done
:
"""

BALANCER = "irqbalance"
BALANCED = "irqbalance runs on this host and will move it: stop it with a service step before this one"
MANAGED = "the kernel or the driver manages this interrupt by itself"


def _pattern(text: str) -> str:
    if not text.isprintable() or set(text) <= {"*", "?"}:
        raise ValueError("name the device: a pattern such as 'eth0*' or 'nvme0q*', not every interrupt")
    return text


DevicePattern = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(_pattern)]


class IrqAffinityStep(HostStep):
    """Binds interrupts to `cpus`: those of `devices` (patterns of names in /proc/interrupts) and those in `irqs`."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("binds interrupts to CPUs", data=("cpus", "devices"))

    kind: Literal["irq_affinity"] = "irq_affinity"
    cpus: CpuSet
    devices: tuple[DevicePattern, ...] = Field((), max_length=50)
    irqs: tuple[Annotated[int, Field(ge=0, le=99999)], ...] = Field((), max_length=1000)

    @model_validator(mode="after")
    def _some(self) -> IrqAffinityStep:
        if not self.cpus:
            raise ValueError("name at least one CPU in cpus")
        if not self.devices and not self.irqs:
            raise ValueError("name devices or irqs")
        return self

    def title(self) -> str:
        which = [*self.devices, *(f"IRQ {irq}" for irq in self.irqs)]
        more = f" and {len(which) - 5} more" if len(which) > 5 else ""
        return f"Interrupts of {', '.join(which[:5])}{more} on CPUs {self.cpus}"

    def explains(self, path: str) -> bool:
        return "affinity" in path and "irq" in path

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs, privileged=True)

    def parse(self, output: bytes) -> State:
        """`NUMBER REST OF THE LINE` -> CPUs for each interrupt that is meant; a pattern or number without one -> None.

        `irqbalance` is there when that daemon runs.
        """
        lines = [line.partition(" ")[::2] for line in output.decode("utf-8", "replace").splitlines()]
        names = dict(rest.partition(" ")[::2] for word, rest in lines if word == "irq")
        cpus = dict(rest.partition(" ")[::2] for word, rest in lines if word == "affinity")
        state: dict[str, str | None] = {}
        unused = {*self.devices, *(f"IRQ {irq}" for irq in self.irqs)}
        for irq, name in names.items():
            meant = {
                pattern for pattern in self.devices for action in _actions(name) if fnmatch.fnmatchcase(action, pattern)
            }
            if int(irq) in self.irqs:
                meant.add(f"IRQ {irq}")
            if meant and irq in cpus:
                state[f"{irq} {name}"] = format_cpus(parse_cpus(cpus[irq]))
                unused -= meant
        state |= dict.fromkeys(sorted(unused))
        return {**state, BALANCER: "running"} if any(word == BALANCER for word, _ in lines) else state

    def wanted(self, before: State) -> State:
        return {key: self.cpus for key in before if key != BALANCER}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        missing = [key for key, cpus in before.items() if cpus is None]
        if missing and self.unsupported == "fail":
            raise PlanError(
                f"no interrupt of this host is one of {', '.join(missing)}",
                hint="Compare with the last column of /proc/interrupts, or set unsupported: skip on the step.",
            )
        return self._write(
            context, {key: self.cpus for key, cpus in before.items() if cpus not in (None, self.cpus)}, before
        )

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return self._write(context, {key: cpus for key, cpus in before.items() if cpus is not None}, before)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        """An interrupt that went with its device leaves nothing behind; while irqbalance runs, all move."""
        if BALANCER in before or BALANCER in now:
            return ()
        return tuple(key for key in super().differing(before, now) if now.get(key) is not None)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        balanced = BALANCER in before or BALANCER in after
        outcomes = []
        for key, wanted in self.wanted(before).items():
            was, now = before[key], after.get(key)
            result: Result = "refused"
            detail = BALANCED if balanced else ""
            if was is None:
                result, detail = "unsupported", "this host has no such interrupt"
            elif now == wanted:
                result = "unchanged" if was == wanted else "applied"
            elif now == was and not balanced:
                result, detail = "unsupported", MANAGED
            outcomes.append(SettingOutcome(_shown(key), wanted, was, now, result, detail))
        return tuple(outcomes)

    def _write(self, context: StepContext, values: dict[str, str], before: State) -> tuple[Command, ...]:
        values.pop(BALANCER, None)
        if not values:
            return ()
        words = [word for key, cpus in values.items() for word in (*key.split(" ", 1), cpus)]
        return (script(_WRITE, context.procfs, *words, privileged=True, timeout_s=120),)


def _actions(line: str) -> list[str]:
    """The names at the end of a line of /proc/interrupts; a shared interrupt has several: `uhci_hcd:usb3, ehci_hcd`."""
    return re.split(r", *", re.sub(r"^.*?(\S+(?:, *\S+)*)$", r"\1", line.strip()))


def _shown(key: str) -> str:
    irq, _, line = key.partition(" ")
    return f"IRQ {irq} ({', '.join(_actions(line))})" if irq.isdigit() else key
