"""Resource limits of the server process."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.process_start import ProcessStart
from agents.base.rights import Rights
from agents.steps.base.step import LaunchStep

_MAX = 2**53


class LimitsStep(LaunchStep):
    """Soft and hard limits for the server process alone; the host's own limits stay."""

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("sets limits of the server process")

    kind: Literal["limits"] = "limits"
    nofile: int | None = Field(None, ge=16, le=_MAX)
    nproc: int | None = Field(None, ge=16, le=_MAX)
    memlock_bytes: int | None = Field(None, ge=0, le=_MAX)
    stack_bytes: int | None = Field(None, ge=65536, le=_MAX)

    @model_validator(mode="after")
    def _some(self) -> LimitsStep:
        if not self.limits():
            raise ValueError("give at least one of nofile, nproc, memlock_bytes, stack_bytes")
        return self

    def limits(self) -> dict[str, int]:
        """The limits that are given, by the names of prlimit(1)."""
        every = {
            "nofile": self.nofile,
            "nproc": self.nproc,
            "memlock": self.memlock_bytes,
            "stack": self.stack_bytes,
        }
        return {name: value for name, value in every.items() if value is not None}

    def title(self) -> str:
        return "Limits of the server: " + ", ".join(f"{name} {value}" for name, value in self.limits().items())

    def parts(self) -> tuple[LimitsStep, ...]:
        given = self.model_dump(exclude_none=True, exclude={"kind"})
        return tuple(LimitsStep.model_validate({name: value}) for name, value in given.items())

    def explains(self, path: str) -> bool:
        return path.removeprefix("process.limits.").removesuffix("_hard") in self.limits()

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        return launch.with_(limits={**launch.limits, **self.limits()})
