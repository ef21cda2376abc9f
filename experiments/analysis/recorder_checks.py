"""Whether the tools that a run recorded its hosts with saw the same CPU use as BenchHub's own monitors."""

from __future__ import annotations

from experiments.analysis.findings import Finding, HostFigures, LoadFigures, RecordedCpu, Thresholds, percent, skipped

SOURCE = "BenchHub's choice"
SAME_RATIO = 0.05
"""CPU use counts as the same within this much of all CPUs, and what one sample too many or too few can make of it."""


def recorders_agree(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Two tools that read the same counters must say the same; where they do not, a figure of CPU use is in doubt."""
    if not hosts.recorded_cpus:
        return None
    absent = [f"{_of(one)} left no sample of the window" for one in hosts.recorded_cpus if one.recorded_ratio is None]
    seen = [one for one in hosts.recorded_cpus if one.recorded_ratio is not None]
    if not seen:
        return skipped("recorders", "; ".join(absent), SOURCE)
    evidence: dict[str, float | str] = {}
    for one in seen:
        evidence[f"{one.tool}_{one.role}_cpu_ratio"] = round(one.recorded_ratio or 0.0, 4)
        if one.own_ratio is not None:
            evidence[f"own_{one.role}_cpu_ratio"] = round(one.own_ratio, 4)
    margin = SAME_RATIO + 1 / max(load.window_s or 1.0, 1.0)
    apart = [one for one in seen if one.own_ratio is not None and abs(_difference(one)) > margin]
    if apart:
        text = f"{'; '.join(map(_both, apart))}. One of the two is wrong, or looked at another time."
        text += f" {'; '.join(absent)}." if absent else ""
        return Finding("recorders", "warn", text, evidence, SOURCE)
    text = "; ".join([*map(_both, seen), *absent])
    return Finding("recorders", "ok", f"{text}.", evidence, SOURCE)


def _difference(one: RecordedCpu) -> float:
    return (one.recorded_ratio or 0.0) - (one.own_ratio or 0.0)


def _both(one: RecordedCpu) -> str:
    own = "which BenchHub itself did not see" if one.own_ratio is None else f"BenchHub itself {percent(one.own_ratio)}"
    return f"{_of(one)} saw the CPUs {percent(one.recorded_ratio or 0.0)} busy, {own}"


def _of(one: RecordedCpu) -> str:
    host = "SUT" if one.role == "sut" else f"host of the {one.role}"
    if one.role.startswith("driver"):
        host = f"driver host{one.role.removeprefix('driver').replace('-', ' ')}"
    return f"{one.tool} on the {host}"
