"""Figures per CPU, so that machines and CPU sets of different size can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from agents.base.cpuset import parse_cpus
from agents.running.preparation import server_cpus
from agents.spec import RunSpec

MOST_CPUS = 4096
_ONE_CPU = re.compile(r"cpu\.\d+\.busy_ratio")


def sut_cpus(spec: RunSpec, channels: Iterable[str], facts: Mapping[str, str]) -> int | None:
    """How many CPUs the server could use: its CPU set, else those that were online while it was measured.

    `channels` are those of the SUT's samples, one per CPU that was online; without any, `facts` tell what was online
    before the recipe was applied. None when nobody knows.
    """
    seen = sum(bool(_ONE_CPU.fullmatch(channel)) for channel in channels)
    allowed = len(parse_cpus(server_cpus(spec)))
    return allowed or seen or len(parse_cpus(facts.get("cpu.online", ""))) or None


def described_cpus(labels: Mapping[str, str], facts: Mapping[str, str]) -> int | None:
    """How many CPUs the server of an imported run could use: its label `cpus`, else the machine's that are online.

    None when nobody says.
    """
    told = labels.get("cpus", "").strip()
    if told.isascii() and told.isdigit() and 0 < int(told) <= MOST_CPUS:
        return int(told)
    found = len(parse_cpus(facts.get("cpu.online", ""))) or int(facts.get("cpu.count", "0"))
    return found if 0 < found <= MOST_CPUS else None


def per_cpu(metrics: Mapping[str, float], cpus: int | None) -> dict[str, float]:
    """Throughput per core, and per second of CPU that was really spent; what cannot be computed is absent."""
    if not cpus:
        return {}
    found = {"sut_cpus": float(cpus)}
    throughput, busy = metrics.get("throughput_rps"), metrics.get("sut_cpu_ratio")
    if throughput is not None:
        found["throughput_per_core_rps"] = throughput / cpus
        if busy:
            found["requests_per_cpu_s"] = throughput / (busy * cpus)
    return found
