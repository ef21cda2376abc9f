"""The tuning steps. A new one is a file or folder here, its name in `AnyStep`, cases, a row in docs/adding.md."""

from __future__ import annotations

from typing import Annotated, TypeGuard

from pydantic import Field

from agents.base.model import kinds_of
from agents.steps.affinity import AffinityStep
from agents.steps.base.step import HostStep, Step
from agents.steps.block_device import BlockDeviceStep
from agents.steps.build.step import BuildStep
from agents.steps.cgroup import CgroupStep
from agents.steps.command import CommandStep
from agents.steps.container_image import ContainerImageStep
from agents.steps.cpu_online import CpuOnlineStep
from agents.steps.environment import EnvironmentStep
from agents.steps.file import FileStep
from agents.steps.governor import GovernorStep
from agents.steps.irq_affinity import IrqAffinityStep
from agents.steps.jvm_options import JvmOptionsStep
from agents.steps.kernel_command_line import KernelCommandLineStep
from agents.steps.limits import LimitsStep
from agents.steps.mount import MountStep
from agents.steps.network_device import NetworkDeviceStep
from agents.steps.numa import NumaStep
from agents.steps.packages.step import PackagesStep
from agents.steps.properties import PropertiesStep
from agents.steps.service import ServiceStep
from agents.steps.swap import SwapStep
from agents.steps.sysctl import SysctlStep
from agents.steps.thp import ThpStep
from agents.steps.xml_edit.step import XmlEditStep

AnyStep = Annotated[
    AffinityStep
    | BlockDeviceStep
    | BuildStep
    | CgroupStep
    | CommandStep
    | ContainerImageStep
    | CpuOnlineStep
    | EnvironmentStep
    | FileStep
    | GovernorStep
    | IrqAffinityStep
    | JvmOptionsStep
    | KernelCommandLineStep
    | LimitsStep
    | MountStep
    | NetworkDeviceStep
    | NumaStep
    | PackagesStep
    | PropertiesStep
    | ServiceStep
    | SwapStep
    | SysctlStep
    | ThpStep
    | XmlEditStep,
    Field(discriminator="kind"),
]

STEPS: dict[str, type[Step]] = kinds_of(AnyStep)


def is_host_step(step: Step) -> TypeGuard[HostStep]:
    """Whether the step changes the host itself, so that it is journalled and put back."""
    return isinstance(step, HostStep)
