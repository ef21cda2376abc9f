"""Checks of what was seen on the hosts while the load ran."""

from __future__ import annotations

from collections.abc import Callable

from experiments.analysis.findings import Finding, HostFigures, Level, LoadFigures, Thresholds, known, percent, skipped

HostCheck = Callable[[HostFigures, LoadFigures, Thresholds], Finding | None]


def exit_status_is_zero(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A tool whose end nobody saw may have been cut off anywhere."""
    source = "unknown is never success"
    if hosts.exit_status is None:
        text = f"How {load.tool} ended is unknown: its exit status was not seen."
        return Finding("exit_status", "invalid", text, {"exit_status": "unknown"}, source)
    evidence = {"exit_status": hosts.exit_status}
    if hosts.exit_status != 0:
        text = f"{load.tool} ended with exit status {hosts.exit_status}."
        return Finding("exit_status", "invalid", text, evidence, source)
    return Finding("exit_status", "ok", f"{load.tool} ended with exit status 0.", evidence, source)


def no_host_was_restarted(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A restart takes the runtime tuning with it."""
    source = "unknown is never success"
    if hosts.boot_id_changed is None:
        text = "Whether a host was restarted during the run is unknown."
        return Finding("boot_id", "warn", text, {"boot_id_changed": "unknown"}, source)
    if hosts.boot_id_changed:
        text = "A host was restarted during the run (its boot_id changed), so the tuning is gone."
        return Finding("boot_id", "invalid", text, {"boot_id_changed": "yes"}, source)
    return Finding("boot_id", "ok", "No host was restarted during the run.", {"boot_id_changed": "no"}, source)


def driver_had_spare_cpu(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """A full driver measures itself: throughput is its own limit and latency includes its own queue."""
    source = "k6 documentation: keep 20 % idle; one full thread is BenchHub's choice"
    mean = hosts.driver_cpu_mean_ratio if hosts.driver_cpu_mean_ratio is not None else hosts.driver_cpu_max_ratio
    thread = hosts.driver_thread_max_ratio
    evidence = known(
        driver_cpu_mean_ratio=hosts.driver_cpu_mean_ratio,
        driver_cpu_max_ratio=hosts.driver_cpu_max_ratio,
        driver_thread_max_ratio=thread,
    )
    if mean is None and thread is None:
        text = "The driver's CPU use was not measured, so the driver may have been the limit."
        return Finding("driver_cpu", "warn", text, {"driver_cpu_mean_ratio": "unknown"}, source)
    full: list[str] = []
    if mean is not None and mean > limits.driver_cpu_ratio:
        full.append(f"its CPUs were {percent(mean)} busy (limit {percent(limits.driver_cpu_ratio)})")
    if thread is not None and thread >= limits.driver_thread_ratio:
        full.append(f"one of its threads was {percent(thread)} busy")
    driver = f"The driver host {hosts.busiest_driver}" if hosts.busiest_driver else "The driver"
    if full:
        level: Level = "invalid" if limits.driver_cpu_invalid else "warn"
        text = f"{driver} may have been the limit, not the SUT: {' and '.join(full)}."
        return Finding("driver_cpu", level, text, evidence, source)
    seen = [f"CPUs {percent(mean)} busy"] if mean is not None else []
    seen += [f"busiest thread {percent(thread)}"] if thread is not None else []
    whose = f"The busiest driver host, {hosts.busiest_driver}," if hosts.busiest_driver else driver
    return Finding("driver_cpu", "ok", f"{whose} had CPU to spare: {', '.join(seen)}.", evidence, source)


def sut_was_busy(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Maximum throughput with idle CPUs means that something else than the SUT's CPUs is the limit."""
    busy, whose = hosts.sut_cpu_mean_ratio, "The SUT"
    if fullest := [(use, role) for role, use in hosts.member_uses.items() if use is not None]:
        busy, role = max(fullest)
        whose = f"The busiest member, {role},"
    saturated = (
        load.load_model == "open"
        and bool(load.offered_rate_rps)
        and (load.throughput_rps or 0.0) < limits.saturated_below_ratio * (load.offered_rate_rps or 0.0)
    )
    # Only these loads ask for all that the SUT can give; think times and offered rates leave it idle on purpose.
    if not (load.habits.back_to_back or saturated):
        return None
    source = "BenchHub's choice"
    if busy is None:
        return skipped("sut_cpu", "the SUT's CPU use was not measured", source)
    if busy < limits.sut_cpu_ratio:
        text = (
            f"{whose} was {percent(busy)} busy at maximum throughput (limit {percent(limits.sut_cpu_ratio)}): "
            "a lock, a pool, the network or the driver may be the limit."
        )
        return Finding("sut_cpu", "warn", text, {"sut_cpu_mean_ratio": busy}, source)
    return Finding("sut_cpu", "ok", f"{whose} was {percent(busy)} busy.", {"sut_cpu_mean_ratio": busy}, source)


def cpus_were_not_shared(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Driver and SUT on the same CPUs take time from each other."""
    source = "BenchHub's choice"
    if hosts.shared_cpus is None:
        return skipped("shared_cpus", "on which CPUs driver and SUT ran is unknown", source)
    if not hosts.shared_cpus:
        text = "Driver and SUT did not share a CPU."
        return Finding("shared_cpus", "ok", text, {"shared_cpus": "no"}, source)
    text = (
        "Driver and SUT ran on the same CPUs and took time from each other: compare only with runs made the same way."
    )
    return Finding("shared_cpus", "warn", text, {"shared_cpus": "yes"}, source)


def network_kept_flowing(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Some tools do not notice a cut link; the SUT's packet counter does."""
    stalled = hosts.network_stalled_s
    source = "BenchHub's choice"
    if stalled is None:
        why = hosts.unknown.get("network_stall", "too few samples of the SUT's network in the window")
        return skipped("network_stall", why, source)
    window_s = load.window_s
    evidence = known(network_stalled_s=stalled, window_s=window_s)
    if stalled <= 0:
        return Finding("network_stall", "ok", "Packets reached the SUT all the time.", evidence, source)
    of = f" of {window_s:.0f} s" if window_s else ""
    level: Level = "invalid" if not window_s or stalled > limits.network_stall_invalid_ratio * window_s else "warn"
    text = f"For {stalled:.0f} s{of} the SUT received almost no packets (less than 10 % of the median rate)."
    return Finding("network_stall", level, text, evidence, source)


def clocks_agree(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Samples of two hosts can only be laid over each other when their clocks agree."""
    source = "like SPECjbb2015's offset field; limits are BenchHub's choice"
    if hosts.clock_offset_s is None:
        return skipped("clocks", "a host's date does not show fractions of a second", source)
    offset, window_s = abs(hosts.clock_offset_s), load.window_s
    evidence = known(
        clock_offset_s=round(hosts.clock_offset_s, 4),
        clock_midpoint_s=hosts.clock_midpoint_s,
        clock_round_trip_s=hosts.clock_round_trip_s,
        window_s=window_s,
    )
    if window_s and offset > limits.clock_invalid_ratio * window_s:
        text = (
            f"The hosts' clocks are {offset:.2f} s apart, "
            f"more than {percent(limits.clock_invalid_ratio)} of the {window_s:.0f} s window."
        )
        return Finding("clocks", "invalid", text, evidence, source)
    level: Level = "warn" if offset > limits.clock_warn_s else "ok"
    return Finding("clocks", level, f"The hosts' clocks are {offset:.2f} s apart.", evidence, source)


def tools_began_together(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Rates of several load tools add up only for the time in which all of them loaded the server."""
    source = "BenchHub's choice"
    if hosts.several_tools is not True:
        return None
    spread, window_s = hosts.start_spread_s, load.window_s
    if spread is None or not window_s:
        text = "Whether the load tools began together is unknown."
        return Finding("start_together", "warn", text, {"start_spread_s": "unknown"}, source)
    evidence = known(start_spread_s=spread, window_s=window_s)
    text = f"The load tools began within {spread:.2f} s of each other"
    level: Level = "ok"
    if spread > limits.start_spread_warn_ratio * window_s:
        level = "invalid" if spread > limits.start_spread_invalid_ratio * window_s else "warn"
        text += (
            f", which is {percent(spread / window_s)} of the {window_s:.0f} s window: their rates do not quite add up"
        )
    return Finding("start_together", level, f"{text}.", evidence, source)


def monitors_saw_the_window(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """After a cut or a change of worker the samples have a gap, and a mean over the rest is not that of the window."""
    source = "BenchHub's choice"
    unseen = {hosts.called: hosts.sut_unseen_s, "the driver host": hosts.driver_unseen_s}
    missing = {name: seconds for name, seconds in unseen.items() if seconds is not None}
    window_s = load.window_s
    if not missing or not window_s:
        return skipped("monitors", "whether the monitors saw the whole window is unknown", source)
    evidence = known(sut_unseen_s=hosts.sut_unseen_s, driver_unseen_s=hosts.driver_unseen_s, window_s=window_s)
    gaps = [
        f"{seconds:.0f} s of {name}"
        for name, seconds in missing.items()
        if seconds > limits.monitor_missing_ratio * window_s
    ]
    if gaps:
        text = (
            f"Of the {window_s:.0f} s window the monitors missed {' and '.join(gaps)}: "
            "CPU use and the other figures of the hosts are means over the rest."
        )
        return Finding("monitors", "warn", text, evidence, source)
    text = f"The monitors saw at least {window_s - max(missing.values()):.0f} of {window_s:.0f} s on every host."
    return Finding("monitors", "ok", text, evidence, source)


HOST_CHECKS: tuple[HostCheck, ...] = (
    exit_status_is_zero,
    no_host_was_restarted,
    driver_had_spare_cpu,
    sut_was_busy,
    cpus_were_not_shared,
    network_kept_flowing,
    clocks_agree,
    tools_began_together,
    monitors_saw_the_window,
)
