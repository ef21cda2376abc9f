"""The registry of tuning steps: a new one is a file in this package and a line in each of the two tables here."""

from __future__ import annotations

from typing import Annotated, TypeGuard

from pydantic import Field

from agents.steps.affinity import AffinityStep
from agents.steps.base import HostStep, Step
from agents.steps.command import CommandStep
from agents.steps.cpu_online import CpuOnlineStep
from agents.steps.environment import EnvironmentStep
from agents.steps.file import FileStep
from agents.steps.jvm_options import JvmOptionsStep
from agents.steps.limits import LimitsStep
from agents.steps.sysctl import SysctlStep
from agents.steps.xml_edit import XmlEditStep

AnyStep = Annotated[
    AffinityStep
    | CommandStep
    | CpuOnlineStep
    | EnvironmentStep
    | FileStep
    | JvmOptionsStep
    | LimitsStep
    | SysctlStep
    | XmlEditStep,
    Field(discriminator="kind"),
]

STEPS: dict[str, type[Step]] = {
    "affinity": AffinityStep,
    "command": CommandStep,
    "cpu_online": CpuOnlineStep,
    "environment": EnvironmentStep,
    "file": FileStep,
    "jvm_options": JvmOptionsStep,
    "limits": LimitsStep,
    "sysctl": SysctlStep,
    "xml_edit": XmlEditStep,
}


def is_host_step(step: Step) -> TypeGuard[HostStep]:
    """Whether the step changes the host itself, so that it is journalled and put back."""
    return isinstance(step, HostStep)
