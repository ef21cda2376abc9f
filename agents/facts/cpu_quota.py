"""How many CPUs the login may use by its control groups: lscpu shows those of the machine, in a container, too."""

from __future__ import annotations

from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.cpu_quota import SCRIPT, parse_limits
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known


@dataclass(frozen=True)
class CpuQuota:
    """The tightest limit, in CPUs, and the group that has it."""

    cpus: float
    group: str

    def stable(self) -> dict[str, str]:
        return known(cpu__quota=f"{self.cpus:g}")

    def volatile(self) -> dict[str, str]:
        return known(cpu__quota_group=self.group)


def command() -> Command:
    """The command that prints the limits of the login's own control groups; nothing where there is none."""
    return script(f"{SCRIPT}show_cpu_limits /proc/self/cgroup")


def parse(output: bytes) -> CpuQuota:
    """The tightest limit. Raises ParseError when there is none in the text."""
    limits = parse_limits(decode(output))
    if not limits:
        raise ParseError("this names no limit of a control group", line=1)
    tightest = min(limits, key=lambda limit: limit.cpus)
    return CpuQuota(tightest.cpus, tightest.group)


FACT = Fact("cpu_quota", command(), parse, (Section("cpu.quota", "CPU", first=("cpu.quota",), says_prefix=True),))
