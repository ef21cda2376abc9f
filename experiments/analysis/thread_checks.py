"""Which threads of the server used its CPUs, and whether the one that polls had one for itself. Observations only."""

from __future__ import annotations

from experiments.analysis.findings import Finding, HostFigures, LoadFigures, ThreadGroup, Thresholds, percent, skipped

SOURCE = "/proc/PID/task/*/stat; Linux keeps 15 letters of a thread's name"
FULL_RATIO = 0.9
"""A thread that used this share of a CPU had work all the time."""


def threads_were_seen(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """The busiest group of threads, and how request threads and poller shared the CPUs."""
    groups = sorted(hosts.threads, key=lambda group: -group.cpus)
    cpus = hosts.server_cpus
    if not groups or not cpus or groups[0].cpus <= 0:
        return skipped("threads", "the CPU time of the server's threads was not measured", SOURCE)
    hottest = groups[0]
    evidence: dict[str, float | str] = {
        "hottest": hottest.name,
        "hottest_cpus": round(hottest.cpus, 3),
        "hottest_threads": hottest.threads,
        "server_cpus": cpus,
    }
    text = f"The busiest threads of the server: {_used(hottest)} of {cpus} CPU{_s(cpus)}"
    text += f"; next {_used(groups[1])}." if len(groups) > 1 and groups[1].cpus >= 0.01 else "."
    by_name = {group.name: group for group in groups}
    requests, poller = by_name.get(hosts.request_threads), by_name.get(hosts.poller_thread)
    if requests is not None and poller is not None:
        evidence |= {
            "request_threads": requests.threads,
            "request_cpus": round(requests.cpus, 3),
            "poller_cpus": round(poller.cpus, 3),
        }
        text += f" {_observation(requests, poller, cpus)}"
    return Finding("threads", "ok", text, evidence, SOURCE)


def _observation(requests: ThreadGroup, poller: ThreadGroup, cpus: int) -> str:
    used_ratio = (requests.cpus + poller.cpus) / cpus
    both = f"{requests.threads} request threads and the poller used {percent(used_ratio)} of the {cpus} CPUs"
    if used_ratio < FULL_RATIO:
        return f"{both}: there was room, so more request threads than CPUs - 1 cost nothing here."
    if requests.threads < cpus:
        return f"{both}, and each had a CPU of its own: request threads = CPUs - 1 or fewer."
    if cpus == 1:
        return f"{both}: they took turns, and on one CPU no number of request threads leaves the poller one of its own."
    got = f"the poller got {poller.cpus:.2f} of a CPU"
    return (
        f"{both}, more threads than CPUs: {got}, and had to wait for its turn. Whether {cpus - 1} request threads "
        "(CPUs - 1), which leave it a CPU of its own, answer more is worth a run."
    )


def _used(group: ThreadGroup) -> str:
    each = f", {percent(group.cpus / group.threads)} of a CPU each" if group.threads > 1 else ""
    return f"{group.name} ({group.threads} thread{_s(group.threads)}{each}) used {group.cpus:.2f}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
