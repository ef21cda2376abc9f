"""What was seen in the measured window on the machine of one server: the loaded one, or a member of its system."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agents.base.cpuset import parse_cpus
from agents.events import FactsCollected, GcPausesRead, Role
from agents.record import Record
from agents.running.preparation import server_cpus
from agents.servers import SERVERS
from agents.spec import Part, RunSpec
from experiments.analysis.findings import GcPauses, HostFigures
from experiments.judging.evidence.channels import Channels
from experiments.judging.evidence.judgement import unseen_s
from experiments.judging.evidence.load_course import began_unix_s


def machine_figures(
    spec: RunSpec, part: Part, record: Record, channels: Channels, duration_s: float, *, shared: bool
) -> HostFigures:
    """The figures of the server's own machine and JVM. `shared`: a load tool ran on its CPUs."""
    role, facts = part.role, record.facts[part.role]
    neighbours_ratio, no_neighbours = _neighbours(part, channels, duration_s, shared=shared)
    gc, no_gc = _gc(part, record, duration_s)
    return HostFigures(
        role=part.title if spec.members else "",
        called="its host" if part.place else "the SUT",
        neighbours_ratio=neighbours_ratio,
        steal_ratio=channels.mean(role, ["cpu.steal_ratio"], duration_s),
        swap_pages=channels.rise(role, "swap.pages_count", duration_s),
        memory_available_ratio=_least_memory(role, channels, duration_s),
        governor=facts.profile.get("power.governor"),
        mean_mhz=channels.mean(role, ["cpu_set.mean_mhz"], duration_s),
        throttle_count=channels.rise(role, "frequency.throttle_count", duration_s),
        gc=gc,
        server_cpus=server_cpu_count(part, channels),
        sut_unseen_s=unseen_of(spec, channels, role, duration_s),
        unknown={check: why for check, why in (("neighbours", no_neighbours), ("gc", no_gc)) if why},
    )


def _neighbours(part: Part, channels: Channels, duration_s: float, *, shared: bool) -> tuple[float | None, str]:
    """The share of the server's CPUs that others used, or why that is unknown. Interrupts are left out."""
    if not part.server.is_jvm:
        return (
            None,
            "a process that left the server's others is not told from neighbours; only a JVM is surely one process",
        )
    if shared:
        return None, "the load tool runs on the server's CPUs"
    busy = channels.mean(part.role, ["cpu_set.busy_ratio"], duration_s)
    interrupts = channels.mean(part.role, ["cpu_set.interrupt_ratio"], duration_s)
    server = channels.mean(part.role, ["process.cpu_ratio"], duration_s)
    cpus = server_cpu_count(part, channels)
    if busy is None or interrupts is None or server is None or not cpus:
        return None, ""
    return max(0.0, busy - interrupts - server / cpus), ""


def server_cpu_count(part: Part, channels: Channels) -> int:
    """The CPUs that the server could use: its set, else those that were online; 0 = not seen."""
    return len(parse_cpus(server_cpus(part))) or sum(
        name.split(".")[1].isdigit() and name.endswith(".busy_ratio") for name in channels.names(part.role, "cpu.")
    )


def _least_memory(role: Role, channels: Channels, duration_s: float) -> float | None:
    """The smallest share of the host's memory that was available in the window."""
    left, used = (channels.series.get((role, f"memory.{name}_bytes")) for name in ("available", "used"))
    if left is None or used is None:
        return None
    shares = [
        free / (free + taken)
        for at_s, free, taken in zip(left.at_s, left.values, used.values, strict=False)
        if 0 <= at_s <= duration_s and free + taken > 0
    ]
    return min(shares, default=None)


def _gc(part: Part, record: Record, duration_s: float) -> tuple[GcPauses | None, str]:
    """The pauses inside the measured window, of the instance that paused longest, or why they are unknown."""
    reads = [read for (role, _), read in record.gc_pauses.items() if role == part.role]
    if not reads:
        if not part.server.is_jvm:
            titles = sorted((server.title for server in SERVERS.values() if server.is_jvm), reverse=True)
            return None, f"BenchHub keeps a log of the garbage collector for {' and '.join(titles)} only"
        return None, "the JVM wrote no log of its garbage collector (HotSpot from Java 9 on can)"
    each = [_pauses_in(read, record.facts[part.role], began_unix_s(record), duration_s) for read in reads]
    worst = max(each, key=lambda pauses: pauses.total_s)
    return replace(worst, full=sum(pauses.full for pauses in each), instances=len(each)), ""


def _pauses_in(read: GcPausesRead, host: FactsCollected, started_unix_s: float, duration_s: float) -> GcPauses:
    """The pauses that ended inside the window, which began at `started_unix_s` of BenchHub's clock."""
    began_s = started_unix_s + (host.clock_offset_s or 0.0)
    inside = [
        (pause_ms, full)
        for at_unix_s, pause_ms, full in zip(read.at_unix_s, read.pause_ms, read.full, strict=True)
        if 0 <= at_unix_s - began_s <= duration_s
    ]
    return GcPauses(
        count=len(inside),
        total_s=sum(pause_ms for pause_ms, _ in inside) / 1000,
        longest_ms=max((pause_ms for pause_ms, _ in inside), default=0.0),
        full=sum(full for _, full in inside),
        cut=read.cut and bool(read.at_unix_s) and read.at_unix_s[0] > began_s,
    )


def unseen_of(spec: RunSpec, channels: Channels, role: Role, duration_s: float) -> float:
    """Seconds of the window without samples of the host, whichever monitor has the most of them."""
    lines = [line for (owner, name), line in channels.series.items() if owner == role and name.startswith("cpu")]
    at_s: Any = max((line.at_s for line in lines), key=len, default=())
    return unseen_s(at_s, duration_s, spec.monitor_interval_s)
