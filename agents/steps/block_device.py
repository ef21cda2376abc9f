"""How the kernel queues what goes to a disk: its I/O scheduler, how far it reads ahead, how much may wait."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.rights import Rights
from agents.base.setting_outcome import SettingOutcome
from agents.steps.base.settings_files import parse_settings, write_settings
from agents.steps.base.step import HostStep, State, StepContext

Device = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_!.-]{0,63}$")]
Scheduler = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}$")]

SCHEDULER = "scheduler"
_CHOSEN = re.compile(r"\[([^\]]+)\]")
_ABSENT = "this device does not have it"

# A scheduler brings settings of its own and changes some of the queue's: all are read, so that all can come back.
_PROBE = """
cd "$1/block/$2/queue" 2>/dev/null || exit 0
grep -Hs '' scheduler read_ahead_kb nr_requests wbt_lat_usec nomerges rq_affinity iosched/* /dev/null
:
"""


class BlockDeviceStep(HostStep):
    """Sets the I/O scheduler, the read-ahead and the length of the queue of a disk: `device` is its name below
    /sys/block (sda, nvme0n1, dm-0).
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("sets I/O schedulers and queues of disks", data=("device", "scheduler"))

    kind: Literal["block_device"] = "block_device"
    device: Device
    scheduler: Scheduler | None = None
    read_ahead_kb: int | None = Field(None, ge=0, le=1 << 20)
    nr_requests: int | None = Field(None, ge=1, le=1 << 20)

    @model_validator(mode="after")
    def _some(self) -> BlockDeviceStep:
        if not self._asked():
            raise ValueError("give at least one of scheduler, read_ahead_kb, nr_requests")
        return self

    def title(self) -> str:
        return f"Disk {self.device}: " + ", ".join(f"{name} {value}" for name, value in self._asked().items())

    def explains(self, path: str) -> bool:
        return f"block.{self.device}.queue." in path and path.rpartition(".")[2] in self._asked()

    def probe(self, context: StepContext) -> Command:
        return script(_PROBE, context.sysfs, self.device)

    def parse(self, output: bytes) -> State:
        """Every setting of the queue and of its scheduler; and which schedulers this disk offers (`choices`)."""
        state: dict[str, str | None] = dict(parse_settings(output))
        offered = state.get(SCHEDULER) or ""
        if chosen := _CHOSEN.search(offered):
            state |= {SCHEDULER: chosen[1], "choices": offered.replace("[", "").replace("]", "")}
        return {**dict.fromkeys((*self._asked(), "choices")), **state}

    def wanted(self, before: State) -> State:
        return self._asked()

    def apply(self, context: StepContext, before: State) -> tuple[Command, ...]:
        unable = self._unable(before)
        if unable and self.unsupported == "fail":
            name, reason = next(iter(unable.items()))
            raise PlanError(
                f"disk {self.device}: {name} = {self._asked()[name]} cannot be set, {reason}",
                hint="Compare with ls /sys/block and its queue/scheduler, or set unsupported: skip on the step.",
            )
        asked = [(n, v) for n, v in self._asked().items() if n not in unable and before[n] != v]
        return write_settings(self._queue(context), asked)

    def revert(self, context: StepContext, before: State) -> tuple[Command, ...]:
        # The scheduler first: it brings settings of its own, and changes the length of the queue.
        old = {name: value for name, value in before.items() if value is not None and name != "choices"}
        ordered = sorted(old.items(), key=lambda one: (one[0] != SCHEDULER, not one[0].startswith("iosched/")))
        return write_settings(self._queue(context), ordered)

    def differing(self, before: State, now: State) -> tuple[str, ...]:
        return tuple(key for key in super().differing(before, now) if key != "choices" and before[key] is not None)

    def outcomes(self, before: State, after: State) -> tuple[SettingOutcome, ...]:
        unable = self._unable(before)
        return tuple(
            SettingOutcome(o.setting, o.wanted, o.before, o.effective, "unsupported", unable[o.setting])
            if o.setting in unable
            else o
            for o in super().outcomes(before, after)
        )

    def _queue(self, context: StepContext) -> str:
        return f"{context.sysfs}/block/{self.device}/queue"

    def _asked(self) -> dict[str, str]:
        given = {SCHEDULER: self.scheduler, "read_ahead_kb": self.read_ahead_kb, "nr_requests": self.nr_requests}
        return {name: str(value) for name, value in given.items() if value is not None}

    def _unable(self, before: State) -> dict[str, str]:
        unable = {name: _ABSENT for name in self._asked() if before[name] is None}
        choices = (before.get("choices") or "").split()
        if self.scheduler is not None and choices and self.scheduler not in choices:
            unable[SCHEDULER] = f"this disk offers {', '.join(choices)} (modprobe {self.scheduler} may bring it)"
        return unable
