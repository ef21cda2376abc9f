"""On which NUMA nodes the memory of the server process lies."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator, model_validator

from agents.base.cpuset import CpuSet
from agents.base.process_start import ProcessStart
from agents.base.rights import Rights
from agents.steps.base.step import LaunchStep, Program

_OPTIONS = {"bind": "--membind", "interleave": "--interleave", "preferred": "--preferred"}


class NumaStep(LaunchStep):
    """Places the memory of the server: only on `nodes` (bind), on each in turn (interleave), on one while it has room
    (preferred), or where the thread runs that asks first (local). Its CPUs are an `affinity` step's.
    """

    sets_clock: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("places the server's memory on NUMA nodes", data=("nodes",))

    kind: Literal["numa"] = "numa"
    policy: Literal["bind", "interleave", "preferred", "local"]
    nodes: CpuSet = ""

    @field_validator("nodes", mode="before")
    @classmethod
    def _number(cls, nodes: object) -> object:
        return str(nodes) if isinstance(nodes, int) and not isinstance(nodes, bool) else nodes

    @model_validator(mode="after")
    def _nodes_of_the_policy(self) -> NumaStep:
        if self.policy == "local" and self.nodes:
            raise ValueError("nodes: the policy local asks for none")
        if self.policy != "local" and not self.nodes:
            raise ValueError(f"nodes: name the nodes for the policy {self.policy}, such as 0 or 0-1")
        if self.policy == "preferred" and not self.nodes.isdigit():
            raise ValueError("nodes: the policy preferred takes one node")
        return self

    @property
    def programs(self) -> tuple[Program, ...]:
        return (Program("numactl", "numactl"),)

    def title(self) -> str:
        where = f" on NUMA nodes {self.nodes}" if self.nodes else ""
        return f"Memory of the server: {self.policy}{where}"

    def explains(self, path: str) -> bool:
        return path == "process.memory_policy"

    def contribute(self, launch: ProcessStart) -> ProcessStart:
        option = f"{_OPTIONS[self.policy]}={self.nodes}" if self.nodes else "--localalloc"
        return launch.with_(prefix=(*launch.prefix, "numactl", option, "--"))
