"""The monitors. A new one is a file here, a line in `MONITORS`, cases, and a row in the guide."""

from __future__ import annotations

from agents.monitors.base import Monitor
from agents.monitors.cgroup import CgroupMonitor
from agents.monitors.cpu import CpuMonitor
from agents.monitors.cpu_quota import CpuQuotaMonitor
from agents.monitors.disk import DiskMonitor
from agents.monitors.energy import EnergyMonitor
from agents.monitors.faults import FaultsMonitor
from agents.monitors.frequency import FrequencyMonitor
from agents.monitors.interrupts import InterruptsMonitor
from agents.monitors.listen_queue import ListenQueueMonitor
from agents.monitors.memory import MemoryMonitor
from agents.monitors.network import NetworkMonitor
from agents.monitors.nginx import NginxMonitor
from agents.monitors.postgresql import PostgreSQLMonitor
from agents.monitors.pressure import PressureMonitor
from agents.monitors.scheduling import SchedulingMonitor
from agents.monitors.sockets import SocketsMonitor
from agents.monitors.swap import SwapMonitor
from agents.monitors.threads import ThreadsMonitor

MONITORS: dict[str, Monitor] = {
    monitor.kind: monitor
    for monitor in (
        CgroupMonitor(),
        CpuMonitor(),
        CpuQuotaMonitor(),
        DiskMonitor(),
        EnergyMonitor(),
        FaultsMonitor(),
        FrequencyMonitor(),
        InterruptsMonitor(),
        ListenQueueMonitor(),
        MemoryMonitor(),
        NetworkMonitor(),
        NginxMonitor(),
        PostgreSQLMonitor(),
        PressureMonitor(),
        SchedulingMonitor(),
        SocketsMonitor(),
        SwapMonitor(),
        ThreadsMonitor(),
    )
}
