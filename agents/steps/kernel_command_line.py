"""What the kernel was started with: checked, and never changed. The way there is a plan for a person."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import Result, SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_PROBE = """
printf 'command line='; cat "$1/cmdline" 2>/dev/null || echo
for name in grubby update-grub grub2-mkconfig kernelstub bootctl; do
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v $name >/dev/null && { echo "loader=$name"; break; }
done
:
"""

Argument = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}(?:=[A-Za-z0-9_.,:;@/+*%~^-]{0,500})?$")]
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


class KernelCommandLineStep(HostStep):
    """Insists that the kernel was started with the arguments in `present` (mitigations=off, isolcpus=2-3), and with
    none that is named in `absent`. BenchHub restarts no host: else the run is refused, and told what to do.
    """

    sets_clock: ClassVar[bool] = False
    root: ClassVar[str] = "never"
    rights: ClassVar[Rights] = Rights("reads what the kernel was started with", data=("present", "absent"))

    kind: Literal["kernel_command_line"] = "kernel_command_line"
    present: tuple[Argument, ...] = Field((), max_length=50)
    absent: tuple[ArgumentName, ...] = Field((), max_length=50)

    @model_validator(mode="after")
    def _some(self) -> KernelCommandLineStep:
        if not self.present and not self.absent:
            raise ValueError("give present or absent")
        names = [argument.partition("=")[0] for argument in self.present]
        if twice := [name for name in names if name in self.absent]:
            raise ValueError(f"{twice[0]} cannot be present and absent at once")
        return self

    @property
    def needs_root(self) -> bool:
        return False

    def title(self) -> str:
        asked = [*self.present, *(f"no {name}" for name in self.absent)]
        return f"Kernel started with {', '.join(asked)}"

    def explains(self, path: str) -> bool:
        return path.endswith("kernel.command_line")

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.procfs)

    def parse(self, output: bytes) -> State:
        """For each argument that is asked about whether it is there ("yes", "no"); None where the host shows no command
        line. `loader` is the program that changes it on this host.
        """
        fields = dict(line.partition("=")[::2] for line in output.decode("utf-8", "replace").splitlines())
        words = [word.replace('"', "") for word in _WORD.findall(fields.get("command line", ""))]
        names = {word.partition("=")[0] for word in words}
        there = {argument: argument in words for argument in self.present}
        there |= {name: name in names for name in self.absent}
        shown = {key: ("yes" if yes else "no") if words else None for key, yes in there.items()}
        return {**shown, "loader": fields.get("loader")}

    def wanted(self, before: State) -> State:
        return {**dict.fromkeys(self.present, "yes"), **dict.fromkeys(self.absent, "no")}

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        wrong = [key for key, value in self.wanted(before).items() if before[key] != value]
        if wrong and self.unsupported == "fail":
            add = [argument for argument in self.present if argument in wrong]
            remove = [name for name in self.absent if name in wrong]
            said = [f"without {argument}" for argument in add] + [f"with {name}" for name in remove]
            raise PlanError(f"the kernel was started {' and '.join(said)}", hint=_plan(add, remove, before["loader"]))
        return ()

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        return ()

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return ()

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        found = []
        for key, wanted in self.wanted(before).items():
            result: Result = "unchanged" if after[key] == wanted else "unsupported"
            detail = "" if result == "unchanged" else "it takes a restart of the host"
            found.append(SettingOutcome(key, wanted, before[key], after[key], result, detail))
        return tuple(found)


def _plan(add: list[str], remove: list[str], loader: str | None) -> str:
    """What a person does on the host, by the program that changes its command line; BenchHub does none of it."""
    if loader == "grubby":
        change = "grubby --update-kernel=ALL"
        change += f' --args="{" ".join(add)}"' if add else ""
        change += f' --remove-args="{" ".join(remove)}"' if remove else ""
    else:
        what = [f"add {' '.join(add)}"] if add else []
        what += [f"take out {' '.join(remove)}"] if remove else []
        makes = {
            "update-grub": "update-grub",
            "grub2-mkconfig": "grub2-mkconfig -o /boot/grub2/grub.cfg",
        }
        if loader in makes:
            where = "GRUB_CMDLINE_LINUX in /etc/default/grub"
            change = f"in {where} {' and '.join(what)}; {makes[loader]}"
        else:
            change = f"{' and '.join(what)} where the boot loader of this host has the kernel's arguments"
    return f"BenchHub restarts no host. As root there, while no run needs it: {change}; reboot. Then launch again."
