"""How many CPUs the watched process may use by its control groups, and how often that stopped it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agents.base.channel_kind import ChannelKind, ChartGroup
from agents.base.cpu_quota import SCRIPT, parse_limits
from agents.monitors.base import Channel, Monitor, Reading

_CPUS = ChartGroup("cpu_quota", "CPUs that a control group allows", 46, sometimes=True)
_STOPPED = ChartGroup("cpu_throttled", "How often a control group stopped server and load tool", 47, sometimes=True)


class CpuQuotaMonitor(Monitor):
    """The tightest limit in CPUs, and the share of the kernel's periods (mostly 100 ms) in which the process was
    stopped because it had used up its share. A process without a limit has no such channels."""

    kind = "cpu_quota"
    cost = "a few small files per reading and no program, beside the 0.4 % of one core that all monitors share"
    channels = (
        ChannelKind(r"cpu_quota\.count", "count", "{host} CPUs allowed", _CPUS),
        ChannelKind(r"cpu_quota\.throttled_ratio", "ratio", "{host} stopped by its quota", _STOPPED),
    )

    def snippet(self, pids: Sequence[int]) -> str:
        return f"{SCRIPT.strip()}\n  show_cpu_limits /proc/{pids[0]}/cgroup" if pids else ""

    def samples(self, before: Reading, now: Reading) -> Mapping[Channel, float]:
        old = {limit.group: limit for limit in parse_limits(before.text)}
        limits = parse_limits(now.text)
        if not limits:
            return {}
        out = {Channel("cpu_quota.count", "count"): min(limit.cpus for limit in limits)}
        ratios = [
            min(1.0, max(0, limit.throttled - was.throttled) / (limit.periods - was.periods))
            for limit in limits
            if (was := old.get(limit.group)) is not None and limit.periods > was.periods
        ]
        if ratios or any(limit.group in old for limit in limits):
            out[Channel("cpu_quota.throttled_ratio", "ratio")] = max(ratios, default=0.0)
        return out
