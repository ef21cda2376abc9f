"""The monitors. A new one is a file here, a line in `MONITORS`, cases, and a row in the guide."""

from __future__ import annotations

from agents.monitors.base import Monitor
from agents.monitors.cpu import CpuMonitor
from agents.monitors.cpu_quota import CpuQuotaMonitor
from agents.monitors.frequency import FrequencyMonitor
from agents.monitors.memory import MemoryMonitor
from agents.monitors.network import NetworkMonitor
from agents.monitors.nginx import NginxMonitor
from agents.monitors.postgresql import PostgreSQLMonitor
from agents.monitors.sockets import SocketsMonitor
from agents.monitors.swap import SwapMonitor
from agents.monitors.threads import ThreadsMonitor

MONITORS: dict[str, Monitor] = {
    monitor.kind: monitor
    for monitor in (
        CpuMonitor(),
        CpuQuotaMonitor(),
        FrequencyMonitor(),
        MemoryMonitor(),
        NetworkMonitor(),
        NginxMonitor(),
        PostgreSQLMonitor(),
        SocketsMonitor(),
        SwapMonitor(),
        ThreadsMonitor(),
    )
}
