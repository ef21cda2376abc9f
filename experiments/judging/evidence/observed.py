"""What the record and the samples of a run say about its validity: the figures of its hosts, the load over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.base.cpuset import parse_cpus
from agents.events import FactsCollected, LoadReported, Role
from agents.record import Record
from agents.running.preparation import server_cpus
from agents.spec import Part, RunSpec
from experiments.analysis.findings import RECORDED, Course, CpuQuota, RecordedCpu, ThreadGroup
from experiments.analysis.load_shape import usual_step
from experiments.analysis.thresholds import Thresholds
from experiments.analysis.validity import HostFigures, RunValidity
from experiments.judging.evidence.channels import Channels
from experiments.judging.evidence.judgement import judge, stalled_s
from experiments.judging.evidence.machine_figures import machine_figures, server_cpu_count, unseen_of
from experiments.judging.evidence.run_channels import unit_of

__all__ = [
    "Channels",
    "busiest_use",
    "course_of",
    "cpu_use",
    "gc_points",
    "host_figures",
    "recorded_cpus",
    "validity_of",
    "window_s",
]

PACKETS = ".rx_packets_per_s"
QUOTA = "cpu_quota.count"


def window_s(spec: RunSpec, record: Record, measured: LoadReported) -> float:
    """How long was measured; idle time behind the end of the load is no part of it."""
    duration_s = float(record.loads[measured.index].duration_s)
    if spec.workload.driver.may_end_early or "started_ms" in measured.report:
        return min(duration_s, measured.report.get("duration_s") or duration_s)
    return duration_s


def validity_of(
    spec: RunSpec, record: Record, measured: LoadReported, channels: Channels, thresholds: Thresholds
) -> RunValidity:
    """Judge the run from its record and its samples; the same again, later, from what is stored of them."""
    duration_s = window_s(spec, record, measured)
    return judge(
        measured.report,
        requested_duration_s=_requested_s(spec, measured, float(record.loads[measured.index].duration_s)),
        hosts=host_figures(spec, record, measured, channels, duration_s),
        course=course_of(channels, duration_s),
        thresholds=thresholds,
    )


def host_figures(
    spec: RunSpec, record: Record, measured: LoadReported, channels: Channels, duration_s: float
) -> HostFigures:
    """All that was seen on the hosts in the measured window."""
    sut, drivers = record.facts["sut"], [record.facts[role] for role in spec.driver_roles]
    shared = {part.role: _shares_cpus(part, spec, record.facts[part.role], drivers) for part in spec.parts}
    machines = {
        part.title: machine_figures(spec, part, record, channels, duration_s, shared=shared[part.role])
        for part in spec.parts
    }
    own = machines.pop(spec.parts[0].title)
    servers = [record.facts[part.role] for part in spec.parts]
    further_off = max((*servers, *drivers), key=lambda facts: abs(facts.clock_offset_s or 0.0))
    # Of the card that carried the load: others go on with what is none of it, such as the monitors' own connection.
    carried = channels.series["sut", busiest] if (busiest := _busiest(channels, duration_s)) else None
    nic, cpu_nodes, nic_node, no_numa = _numa(spec, sut, channels, duration_s)
    rate, ports = _ports(spec.driver_roles, channels, duration_s)
    groups = _thread_groups(channels, duration_s)
    by_use = [group.name for group in sorted(groups, key=lambda group: -group.cpus)]
    request_threads, poller_thread = spec.application.server.paired_threads(by_use) or ("", "")
    return replace(
        own,
        exit_status=measured.exit_status,
        # A job of another boot is dead: the tool's exit status and the server that lived on prove that there was none.
        boot_id_changed=False
        if "collect" in record.finished_phases and all(facts.boot_id for facts in (*servers, *drivers))
        else None,
        driver_cpu_mean_ratio=busiest_use(spec.driver_roles, channels, duration_s),
        driver_thread_max_ratio=max(
            filter(None, (_only_thread(role, channels, duration_s) for role in spec.driver_roles)), default=None
        ),
        busiest_driver=_busiest_driver(spec, channels, duration_s),
        several_tools=bool(measured.parts),
        start_spread_s=measured.start_spread_s,
        sut_cpu_mean_ratio=cpu_use("sut", channels, duration_s),
        quotas=_quotas(spec, channels, duration_s),
        cpu_nodes=cpu_nodes,
        nic=nic,
        nic_node=nic_node,
        new_connections_per_s=rate,
        local_ports=ports,
        threads=groups,
        request_threads=request_threads,
        poller_thread=poller_thread,
        network_stalled_s=stalled_s(carried.at_s, carried.values, duration_s) if carried else None,
        clock_offset_s=further_off.clock_offset_s,
        clock_midpoint_s=further_off.clock_midpoint_s,
        clock_round_trip_s=further_off.clock_round_trip_s,
        shared_cpus=any(shared.values()),
        driver_unseen_s=max(unseen_of(spec, channels, role, duration_s) for role in spec.driver_roles),
        recorded_cpus=recorded_cpus(spec, channels, duration_s),
        member_uses={part.title: cpu_use(part.role, channels, duration_s) for part in spec.parts if spec.members},
        member_own={part.title: _own_use(part, channels, duration_s) for part in spec.parts if spec.members},
        members=machines,
        unknown={**own.unknown, **({"numa": no_numa} if no_numa else {})},
    )


def _own_use(part: Part, channels: Channels, duration_s: float) -> float | None:
    """The share of the CPUs that the server may use which its own processes used."""
    used, cpus = channels.mean(part.role, ["process.cpu_ratio"], duration_s), server_cpu_count(part, channels)
    return used / cpus if used is not None and cpus else None


def _shares_cpus(part: Part, spec: RunSpec, sut: FactsCollected, drivers: Sequence[FactsCollected]) -> bool:
    """Whether server and load tool were on one machine, and not kept apart there by CPU sets of their own."""
    if not sut.boot_id or sut.boot_id not in [driver.boot_id for driver in drivers]:
        return False
    server, tool = parse_cpus(server_cpus(part)), parse_cpus(spec.workload.cpus)
    return not (server and tool) or bool(set(server) & set(tool))


def cpu_use(role: Role, channels: Channels, duration_s: float) -> float | None:
    """How busy the CPUs were that server or load tool may use: those of its set, or what its control group allows."""
    busy = channels.mean(role, ["cpu_set.busy_ratio"], duration_s)
    used = channels.mean(role, ["process.cpu_ratio"], duration_s)
    quota = channels.mean(role, [QUOTA], duration_s)
    if used is None or not quota:
        return busy
    return max(busy or 0.0, min(1.0, used / quota))


def busiest_use(roles: Sequence[Role], channels: Channels, duration_s: float) -> float | None:
    """The same of that host where it is highest; None when it is not known of any."""
    found = [cpu_use(role, channels, duration_s) for role in roles]
    return max((use for use in found if use is not None), default=None)


def _quotas(spec: RunSpec, channels: Channels, duration_s: float) -> tuple[CpuQuota, ...]:
    """What the control groups of server and load tools allow; () where nothing limits them."""
    return tuple(
        CpuQuota(
            spec.hosts[role].name,
            "driver" if role in spec.driver_roles else "sut",
            cpus,
            channels.mean(role, ["cpu_quota.throttled_ratio"], duration_s),
        )
        for role in spec.hosts
        if (cpus := channels.mean(role, [QUOTA], duration_s)) is not None
    )


def course_of(channels: Channels, duration_s: float) -> Course | None:
    """The load over time: as the load tool recorded it, else by the packets that reached the SUT.

    Not by those of the loopback interface: on one machine that carries much besides the load.
    """
    if (recorded := channels.series.get(("driver", "load.throughput_rps"))) is not None:
        return Course(RECORDED, recorded.at_s, recorded.values, complete=True)
    busiest = _busiest(channels, duration_s)
    if busiest is None or (nic := _nic_of(busiest)) == "lo":
        return None
    packets = channels.series["sut", busiest]
    source = f"packets per second that the SUT received on {nic}, in place of requests"
    # A sample speaks for the time before it.
    step_s = usual_step(packets.at_s)
    return Course(source, [at - step_s / 2 for at in packets.at_s], packets.values, step_s)


def gc_points(record: Record, role: Role, started_unix_s: float) -> tuple[list[float], list[float]]:
    """When the JVM of that server paused for garbage collection, counted from `started_unix_s` of BenchHub's clock, and
    for how long.

    The pauses are of its host's clock, so what is known of that one's offset is taken off.
    """
    offset_s = (record.facts[role].clock_offset_s if role in record.facts else None) or 0.0
    found = sorted(
        (round(at - offset_s - started_unix_s, 3), pause_ms)
        for read in record.gc_pauses.values()
        if read.role == role
        for at, pause_ms in zip(read.at_unix_s, read.pause_ms, strict=True)
    )
    return [at_s for at_s, _ in found], [pause_ms for _, pause_ms in found]


def jvm_points(record: Record, role: Role, started_unix_s: float) -> dict[str, tuple[str, list[float], list[float]]]:
    """What the log of that server's JVM tells over time: channel -> unit, when, and what; times as in `gc_points`."""
    offset_s = (record.facts[role].clock_offset_s if role in record.facts else None) or 0.0
    return {
        channel: (unit_of(channel), [round(at - offset_s - started_unix_s, 3) for at in at_unix_s], list(values))
        for read in record.gc_pauses.values()
        if read.role == role
        for channel, (at_unix_s, values) in read.course.items()
    }


def recorded_cpus(spec: RunSpec, channels: Channels, duration_s: float) -> tuple[RecordedCpu, ...]:
    """What each recorder saw of the CPUs on which server and load tool ran, beside what the own monitor saw."""
    found, parts = [], {part.role: part for part in spec.parts}
    for role in spec.hosts:
        cpus = parse_cpus(server_cpus(parts[role]) if role in parts else spec.workload.cpus)
        own = channels.mean(role, ["cpu_set.busy_ratio"], duration_s)
        for tool in spec.workload.recorders:
            names = [f"{tool}.cpu.{cpu}.busy_ratio" for cpu in cpus] or [f"{tool}.cpu.busy_ratio"]
            found.append(RecordedCpu(tool, role, channels.mean(role, names, duration_s), own))
    return tuple(found)


def _requested_s(spec: RunSpec, measured: LoadReported, duration_s: float) -> float | None:
    """How long the load was to last; None when the tool did an amount of work, or began as late as it may."""
    driver = spec.workload.driver
    lasted_s = measured.report.get("duration_s") or 0.0
    in_time = driver.late_start_s > 0 and lasted_s >= duration_s - driver.late_start_s
    return None if driver.may_end_early or in_time else duration_s


def _busiest_driver(spec: RunSpec, channels: Channels, duration_s: float) -> str:
    """The name of the driver host with the fullest CPUs; "" when there is only one, or nothing was seen."""
    means = {role: cpu_use(role, channels, duration_s) for role in spec.driver_roles}
    seen = {role: mean for role, mean in means.items() if mean is not None}
    return spec.hosts[max(seen, key=lambda role: seen[role])].name if len(means) > 1 and seen else ""


def _ports(roles: Sequence[Role], channels: Channels, duration_s: float) -> tuple[float | None, int | None]:
    """New connections per second, and the ports for them, of the driver host that is nearest to its limit."""
    found = []
    for role in roles:
        rate = channels.mean(role, ["tcp.opened_connections_per_s"], duration_s)
        ports = channels.series.get((role, "tcp.local_ports_count"))
        if rate is not None and ports is not None and ports.values and ports.values[-1] > 0:
            found.append((rate, int(ports.values[-1])))
    return max(found, key=lambda pair: pair[0] / pair[1], default=(None, None))


def _only_thread(role: Role, channels: Channels, duration_s: float) -> float | None:
    """Threads of one name are summed; only the tool with a single thread shows that thread alone."""
    names = channels.names(role, "threads.")
    means = [
        mean
        for name in names
        if name.endswith(".cpu_ratio") and (mean := channels.mean(role, [name], duration_s)) is not None
    ]
    counts = channels.mean(role, [name for name in names if name.endswith(".count")], 1e9)
    return max(means) if means and counts == 1 else None


def _thread_groups(channels: Channels, duration_s: float) -> tuple[ThreadGroup, ...]:
    """The server's threads by name. A name that is not always among the busiest counts as 0 while it is not."""
    process = channels.series.get(("sut", "process.cpu_ratio"))
    readings = sum(0 <= at_s <= duration_s for at_s in process.at_s) if process else 0
    found = []
    for channel in channels.names("sut", "threads.") if readings else ():
        name = channel.removeprefix("threads.").removesuffix(".cpu_ratio")
        line = channels.series["sut", channel]
        used = [value for at_s, value in zip(line.at_s, line.values, strict=True) if 0 <= at_s <= duration_s]
        count = channels.mean("sut", [f"threads.{name}.count"], duration_s)
        if channel.endswith(".cpu_ratio") and count:
            found.append(ThreadGroup(name, max(1, round(count)), sum(used) / max(readings, len(used))))
    return tuple(found)


def _numa(
    spec: RunSpec, sut: FactsCollected, channels: Channels, duration_s: float
) -> tuple[str, tuple[int, ...], int | None, str]:
    """The card that carried the load, the nodes of the server's CPUs, the card's node, or why that is unknown."""
    prefix = "cpu.core_of."
    node_of = {
        int(path.removeprefix(prefix)): place.partition("/")[0]
        for path, place in sut.profile.items()
        if path.startswith(prefix)
    }
    cpus = parse_cpus(server_cpus(spec)) or tuple(node_of)
    nodes = tuple(sorted({int(node) for cpu in cpus if (node := node_of.get(cpu, "-")).isdigit()}))
    busiest = _busiest(channels, duration_s)
    if busiest is None:
        return "", nodes, None, "no network card of the SUT carried packets"
    nic = _nic_of(busiest)
    if nic == "lo":
        return nic, nodes, None, "the load came over the loopback interface"
    if len(set(node_of.values()) - {"-"}) == 1:
        return nic, nodes, nodes[0] if nodes else None, ""
    node = sut.profile.get(f"nic.{nic}.numa_node", "")
    return nic, nodes, int(node) if node.isdigit() else None, ""


def _carrying(channels: Channels) -> list[str]:
    """The channels of the SUT's interfaces that received anything."""
    names = [name for name in channels.names("sut", "network.") if name.endswith(PACKETS)]
    return [name for name in names if sum(channels.series["sut", name].values) > 0]


def _busiest(channels: Channels, duration_s: float) -> str | None:
    means = {name: channels.mean("sut", [name], duration_s) or 0.0 for name in _carrying(channels)}
    return max(means, key=lambda name: means[name], default=None)


def _nic_of(channel: str) -> str:
    return channel.removeprefix("network.").removesuffix(PACKETS)
