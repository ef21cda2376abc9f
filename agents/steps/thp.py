"""Transparent huge pages."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import SettingOutcome
from agents.steps.base.step import HostStep, State, StepContext

_DIRECTORY = "kernel/mm/transparent_hugepage"
_CHOSEN = re.compile(r"\[([^\]]+)\]")
RESERVE = "vm.min_free_kbytes"
"""The kernel raises it by itself when it starts to make huge pages, so it is put back, too."""

_PROBE = """
sys=$1 proc=$2
shift 2
for name; do
  if [ -r "$sys/$name" ]; then printf '%s=%s\\n' "$name" "$(cat "$sys/$name")"; fi
done
if [ -r "$proc/sys/vm/min_free_kbytes" ]; then echo "vm.min_free_kbytes=$(cat "$proc/sys/vm/min_free_kbytes")"; fi
"""

_WRITE = """
sys=$1 proc=$2
shift 2
for pair; do
  case $pair in
    vm.min_free_kbytes=*) file=$proc/sys/vm/min_free_kbytes;;
    *) file=$sys/${pair%%=*};;
  esac
  if [ "$(cat "$file" 2>/dev/null)" = "${pair#*=}" ] || [ ! -f "$file" ]; then continue; fi
  printf '%s\\n' "${pair#*=}" >"$file" || echo "the kernel refused $pair" >&2
done
:
"""


class ThpStep(HostStep):
    """Sets when the kernel uses transparent huge pages, how hard it tries, and the same for shared memory."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("sets huge pages")

    kind: Literal["thp"] = "thp"
    enabled: Literal["always", "madvise", "never"] | None = None
    defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = None
    shmem_enabled: Literal["always", "within_size", "advise", "never", "deny", "force"] | None = None

    @model_validator(mode="after")
    def _some(self) -> ThpStep:
        if not self._asked():
            raise ValueError("give at least one of enabled, defrag, shmem_enabled")
        return self

    def title(self) -> str:
        return "Transparent huge pages: " + ", ".join(f"{name} {value}" for name, value in self._asked().items())

    def explains(self, path: str) -> bool:
        name = path.rpartition(".")[2]
        return name in self._asked() and ("transparent_hugepage" in path or path.endswith(f"thp.{name}"))

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, f"{context.sysfs}/{_DIRECTORY}", context.procfs, *self._asked())

    def parse(self, output: bytes) -> State:
        """Each setting as it is chosen, and under `NAME choices` what this kernel offers for it, where it says so."""
        lines = (line.partition("=") for line in output.decode("utf-8", "replace").splitlines())
        shown = {name: value.strip() for name, _, value in lines}
        state: dict[str, str | None] = {}
        for name in self._asked():
            raw = shown.get(name)
            chosen = _CHOSEN.search(raw or "")
            state[name] = chosen[1] if chosen else raw
            state[f"{name} choices"] = raw.replace("[", "").replace("]", "") if raw and chosen else None
        return {**state, RESERVE: shown.get(RESERVE)}

    def wanted(self, before: State) -> State:
        return self._asked()

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        unable = self._unable(before)
        if unable and self.unsupported == "fail":
            name, reason = next(iter(unable.items()))
            raise PlanError(
                f"transparent huge pages: {name} = {self._asked()[name]} cannot be set, {reason}",
                hint="Take it out of the recipe, or set unsupported: skip on the step.",
            )
        return _write(
            context, {n: v for n, v in self._asked().items() if n not in unable and before[n] != v}, reserve=None
        )

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        old = {name: value for name in self._asked() if (value := before[name]) is not None}
        return _write(context, old, reserve=before.get(RESERVE))

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if key in self._asked() or key == RESERVE)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        unable = self._unable(before)
        return tuple(
            SettingOutcome(o.setting, o.wanted, o.before, o.effective, "unsupported", unable[o.setting])
            if o.setting in unable
            else o
            for o in super().outcomes(before, after)
        )

    def _asked(self) -> dict[str, str]:
        every = {"enabled": self.enabled, "defrag": self.defrag, "shmem_enabled": self.shmem_enabled}
        return {name: value for name, value in every.items() if value is not None}

    def _unable(self, before: State) -> dict[str, str]:
        unable = {}
        for name, value in self._asked().items():
            choices = before[f"{name} choices"]
            if before[name] is None:
                unable[name] = "this kernel does not have it"
            elif choices is not None and value not in choices.split():
                unable[name] = f"this kernel offers {', '.join(choices.split())}"
        return unable


def _write(context: StepContext, values: dict[str, str], *, reserve: str | None) -> tuple[Command, ...]:
    pairs = [f"{name}={value}" for name, value in values.items()]
    if not pairs:
        return ()
    if reserve is not None:
        pairs.append(f"{RESERVE}={reserve}")  # last: the kernel changes it when huge pages are switched
    return (script(_WRITE, f"{context.sysfs}/{_DIRECTORY}", context.procfs, *pairs, privileged=True),)
