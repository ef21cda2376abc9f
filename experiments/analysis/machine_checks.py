"""Checks of the SUT as a machine: who else used it, how fast its CPUs ran, its memory, its sockets, its JVM."""

from __future__ import annotations

from experiments.analysis.findings import Finding, HostFigures, Level, LoadFigures, Thresholds, known, percent, skipped
from experiments.analysis.host_checks import HostCheck, monitors_saw_the_window
from experiments.analysis.recorder_checks import recorders_agree
from experiments.analysis.system_limit import a_member_is_the_limit
from experiments.analysis.thread_checks import threads_were_seen

OURS = "BenchHub's choice"


def no_neighbour_took_cpu(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """What ran on the server's CPUs beside it, interrupts left out: those serve the load's own packets."""
    used = hosts.neighbours_ratio
    if used is None:
        why = hosts.unknown.get("neighbours", "the CPU time of the server's process was not measured")
        return skipped("neighbours", why, OURS)
    level = _level(used, limits.neighbours_warn_ratio, limits.neighbours_invalid_ratio)
    limit = limits.neighbours_invalid_ratio if level == "invalid" else limits.neighbours_warn_ratio
    text = f"Other processes used {percent(used, 1)} of the server's CPUs (limit {percent(limit)})."
    return Finding("neighbours", level, text, {"neighbours_ratio": round(used, 4)}, OURS)


def no_cpu_time_was_stolen(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Stolen time went to other guests of the same machine."""
    steal = hosts.steal_ratio
    if steal is None:
        return skipped("steal", f"{hosts.called}'s CPU use was not measured", OURS)
    level = _level(steal, limits.steal_warn_ratio, limits.steal_invalid_ratio)
    limit = limits.steal_invalid_ratio if level == "invalid" else limits.steal_warn_ratio
    text = f"The hypervisor took {percent(steal, 1)} of the CPU time for other guests (limit {percent(limit)})."
    return Finding("steal", level, text, {"steal_ratio": round(steal, 4)}, OURS)


def no_page_was_swapped(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """One page from disk costs more than a thousand requests from memory."""
    if hosts.swap_pages is None:
        return skipped("swap", f"{hosts.called}'s swap counters were not seen", OURS)
    evidence = {"swap_pages": hosts.swap_pages}
    if hosts.swap_pages > 0:
        pages = "page was" if hosts.swap_pages == 1 else "pages were"
        text = f"{hosts.swap_pages:,} memory {pages} swapped during the run."
        return Finding("swap", "invalid", text, evidence, OURS)
    return Finding("swap", "ok", "No memory page was swapped.", evidence, OURS)


def memory_was_left(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A kernel that looks for free pages takes time from the server."""
    left = hosts.memory_available_ratio
    if left is None:
        return skipped("memory", f"{hosts.called}'s memory was not measured", OURS)
    evidence = {"memory_available_ratio": round(left, 4)}
    if left < limits.memory_available_ratio:
        text = (
            f"Only {percent(left, 1)} of {hosts.called}'s memory was available at the lowest point "
            f"(limit {percent(limits.memory_available_ratio)})."
        )
        return Finding("memory", "warn", text, evidence, OURS)
    text = f"At least {percent(left)} of {hosts.called}'s memory stayed available."
    return Finding("memory", "ok", text, evidence, OURS)


def frequency_was_fixed(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Other governors than performance change the clock with the load; many virtual machines have none."""
    if hosts.governor is None:
        return skipped("governor", f"{hosts.called} shows no frequency governor, as most virtual machines", OURS)
    evidence = {"governor": hosts.governor}
    if hosts.governor != "performance":
        text = f'The CPU frequency governor was "{hosts.governor}", so the clock may have moved; use "performance".'
        return Finding("governor", "warn", text, evidence, OURS)
    return Finding("governor", "ok", 'The CPU frequency governor was "performance".', evidence, OURS)


def frequency_was_seen(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """The mean clock is kept with the run; whether two variants had the same one is judged with their verdict."""
    if hosts.mean_mhz is None:
        why = f"{hosts.called} does not show the clock of its CPUs, as most virtual machines"
        return skipped("frequency", why, OURS)
    text = f"The server's CPUs ran at {hosts.mean_mhz:,.0f} MHz on average."
    return Finding("frequency", "ok", text, {"mean_mhz": round(hosts.mean_mhz, 1)}, OURS)


def cpus_were_not_throttled(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A hot CPU slows itself down: then the room's temperature is measured."""
    source = "Linux: thermal_throttle counters"
    if hosts.throttle_count is None:
        why = f"{hosts.called} has no throttle counters (virtual machines and Arm servers have none)"
        return skipped("throttle", why, source)
    evidence = {"throttle_count": hosts.throttle_count}
    if hosts.throttle_count > 0:
        plural = "" if hosts.throttle_count == 1 else "s"
        whose = f"{hosts.called[:1].upper()}{hosts.called[1:]}'s"
        text = f"{whose} CPUs were slowed down {hosts.throttle_count:,} time{plural} because they were too hot."
        return Finding("throttle", "invalid", text, evidence, source)
    return Finding("throttle", "ok", "No CPU was slowed down by heat.", evidence, source)


def no_quota_stopped_a_process(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A process that has used up what its control group allows stands still until the next period of 100 ms."""
    source = "Linux: nr_throttled of cpu.stat"
    if not hosts.quotas:
        return None
    evidence = {f"{quota.host}_quota_cpus": quota.cpus for quota in hosts.quotas}
    evidence |= {
        f"{quota.host}_throttled_ratio": round(quota.throttled_ratio, 4)
        for quota in hosts.quotas
        if quota.throttled_ratio is not None
    }
    stopped = [quota for quota in hosts.quotas if quota.throttled_ratio]
    if not stopped:
        allowed = ", ".join(f"{quota.cpus:g} CPUs on {quota.host}" for quota in hosts.quotas)
        unseen = any(quota.throttled_ratio is None for quota in hosts.quotas)
        text = f"A control group allows no more than {allowed}; "
        text += "how often that stopped a process is unknown." if unseen else "that stopped no process in the window."
        return Finding("cpu_quota", "warn" if unseen else "ok", text, evidence, source)
    told = [
        f"{'the server' if quota.role == 'sut' else 'the load tool'} on {quota.host} to {quota.cpus:g} CPUs, and "
        f"stopped it in {percent(quota.throttled_ratio or 0.0, 1)} of the periods of the window"
        for quota in stopped
    ]
    text = f"A control group limits {' and '.join(told)}: the quota is part of what was measured."
    return Finding("cpu_quota", "warn", text, evidence, source)


def network_is_near_the_cpus(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Every packet crosses between the sockets when CPUs and network card belong to different NUMA nodes."""
    source = "published: +22 % with the local node on one machine, −4 % on another"
    if hosts.nic_node is None or not hosts.cpu_nodes:
        why = hosts.unknown.get("numa", "the NUMA node of the network card that carried the load is unknown")
        return skipped("numa", why, source)
    nodes = ", ".join(map(str, hosts.cpu_nodes))
    evidence = known(cpu_nodes=nodes, nic=hosts.nic, nic_node=hosts.nic_node)
    if hosts.nic_node not in hosts.cpu_nodes:
        text = (
            f"The server's CPUs belong to NUMA node {nodes} and the network card {hosts.nic} to node {hosts.nic_node}: "
            "every packet crosses between the nodes."
        )
        return Finding("numa", "warn", text, evidence, source)
    text = f"The server's CPUs and the network card {hosts.nic} share NUMA node {hosts.nic_node}."
    return Finding("numa", "ok", text, evidence, source)


def ports_suffice(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A closed connection keeps its port for a minute; with every port taken no connection can be made."""
    source = "Linux: ip_local_port_range, TCP_TIMEWAIT_LEN"
    rate, ports = hosts.new_connections_per_s, hosts.local_ports
    if rate is None or ports is None:
        return skipped("ports", "the driver host's new connections or its range of ports were not seen", source)
    most = ports / limits.port_reuse_s
    evidence = known(new_connections_per_s=round(rate, 1), local_ports=ports, most_lasting_per_s=round(most))
    if rate > most:
        text = (
            f"The driver host opened {rate:,.0f} connections/s; its {ports:,} ports last for {most:,.0f} per second, "
            f"because each is kept for {limits.port_reuse_s:.0f} s. Use keep-alive or a wider ip_local_port_range."
        )
        return Finding("ports", "warn", text, evidence, source)
    text = f"The driver host opened {rate:,.0f} connections/s; its ports last for {most:,.0f} per second."
    return Finding("ports", "ok", text, evidence, source)


def collector_paused_little(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """While the JVM collects garbage nothing else runs in it."""
    source = "HotSpot tuning guide; limits are BenchHub's choice"
    gc, window_s = hosts.gc, load.window_s
    if gc is None or not window_s:
        return skipped("gc", hosts.unknown.get("gc", "there is no log of the garbage collector"), source)
    share = gc.total_s / window_s
    evidence = known(
        pauses=gc.count,
        paused_s=round(gc.total_s, 4),
        paused_ratio=round(share, 5),
        longest_pause_ms=round(gc.longest_ms, 3),
        full_collections=gc.full,
        instances=gc.instances,
        log_cut="yes" if gc.cut else None,
    )
    jvm = "The JVM" if gc.instances == 1 else f"The JVM that paused longest, of {gc.instances},"
    reasons = []
    if share > limits.gc_pause_ratio:
        limit = percent(limits.gc_pause_ratio)
        reasons.append(f"stood still for garbage collection {percent(share, 1)} of the time (limit {limit})")
    if gc.full:
        reasons.append(f"made {gc.full} full collection{'s' if gc.full > 1 else ''}")
    if reasons:
        text = f"{jvm} {' and '.join(reasons)}; the longest pause took {gc.longest_ms:,.0f} ms."
        return Finding("gc", "warn", text, evidence, source)
    times = "once" if gc.count == 1 else f"{gc.count:,} times"
    text = (
        f"{jvm} paused {times} for garbage collection, {percent(share, 2)} of the window"
        f"{f', at most {gc.longest_ms:,.1f} ms at once' if gc.count else ''}."
    )
    return Finding("gc", "ok", text, evidence, source)


def _level(ratio: float, warn: float, invalid: float) -> Level:
    return "invalid" if ratio > invalid else "warn" if ratio > warn else "ok"


MACHINE_CHECKS: tuple[HostCheck, ...] = (
    no_neighbour_took_cpu,
    no_cpu_time_was_stolen,
    no_page_was_swapped,
    memory_was_left,
    frequency_was_fixed,
    frequency_was_seen,
    cpus_were_not_throttled,
    no_quota_stopped_a_process,
    network_is_near_the_cpus,
    ports_suffice,
    collector_paused_little,
    threads_were_seen,
    recorders_agree,
    a_member_is_the_limit,
)

OF_EACH_MACHINE: tuple[HostCheck, ...] = (
    no_neighbour_took_cpu,
    no_cpu_time_was_stolen,
    no_page_was_swapped,
    memory_was_left,
    frequency_was_fixed,
    frequency_was_seen,
    cpus_were_not_throttled,
    collector_paused_little,
    monitors_saw_the_window,
)
"""Those that are made of the machine of every member of a system of several hosts."""
