"""The CPUs that the server process may use."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator

from agents.base.cpuset import CpuSet
from agents.base.process_start import ProcessStart
from agents.base.rights import Rights
from agents.steps.base.step import LaunchStep


class AffinityStep(LaunchStep):
    """Binds the server process to `cpus`; what it really got is read back with the effective configuration."""

    sets_clock: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights("binds the server to CPUs", data=("cpus",))
    binds_server: ClassVar[bool] = True

    kind: Literal["affinity"] = "affinity"
    cpus: CpuSet

    @field_validator("cpus")
    @classmethod
    def _some(cls, cpus: str) -> str:
        if not cpus:
            raise ValueError("name at least one CPU")
        return cpus

    def title(self) -> str:
        return f"Server on CPUs {self.cpus}"

    def explains(self, path: str) -> bool:
        return path == "process.cpus"

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        return launch.with_(cpus=self.cpus)
