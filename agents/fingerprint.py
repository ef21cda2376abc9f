"""The fingerprint of a run: which series it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from agents.spec import RunSpec


def fingerprint(
    spec: RunSpec, *, driver_version: str, profile_digest: str, member_digests: Mapping[str, str] | None = None
) -> str:
    """Runs with one fingerprint form a series: same workload, tool, number of driver hosts, latency basis, SUT hardware
    and application; of a system also the hardware of each member (`member_digests`, role -> digest of its profile).
    Profiled runs form series of their own.

    Recipe and labels vary inside a series: they are what teams compare.
    """
    driver, rate, hosts = spec.workload.driver, spec.workload.own_rate_rps, len(spec.drivers)
    count = spec.workload.own_concurrency
    parts = (
        f"{spec.workload.name}@{spec.workload.version}"
        + (f" at {rate:g}" if rate else "")
        + (f" with {count}" if count else ""),
        f"{driver.kind} {driver_version}" + (f" on {hosts} hosts" if hosts > 1 else ""),
        driver.latency_basis,
        profile_digest,
        f"{spec.application.name}@{spec.application.version}",
        *(f"{member.role} {(member_digests or {}).get(member.role, '')}" for member in spec.members),
        *([f"profiled with {', '.join(sorted(spec.profilers))}"] if spec.profilers else []),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
