"""The memory of the process that measures, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def reset_peak_bytes() -> int:
    """Make the kernel count this process's peak (VmHWM) from now on; returns the memory that it has now."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory_bytes("VmRSS")


def memory_bytes(name: str, pid: int | str = "self") -> int:
    """A line of the process's /proc/PID/status, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise SystemExit(f"/proc/{pid}/status has no {name}")
