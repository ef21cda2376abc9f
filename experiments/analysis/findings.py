"""What the validity checks read and say: figures of the load, figures of the hosts, limits, findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "invalid"]
State = Literal["valid", "suspect", "invalid"]


@dataclass(frozen=True)
class Finding:
    """One check: its result in one plain sentence, the numbers behind it, and where the rule comes from."""

    check: str
    level: Level
    sentence: str
    evidence: Mapping[str, float | str]
    source: str


@dataclass(frozen=True)
class RunValidity:
    """Whether a run may enter a comparison. `hides_latency`: its throughput may, its latency may not."""

    state: State
    findings: tuple[Finding, ...]
    hides_latency: bool

    @property
    def reasons(self) -> tuple[str, ...]:
        """The sentences that explain a state other than valid, the worst first."""
        return tuple(f.sentence for level in ("invalid", "warn") for f in self.findings if f.level == level)


@dataclass(frozen=True)
class LoadFigures:
    """One driver report of the measured phase. None = the tool does not say or does not count.

    `requested_duration_s` was asked for, `duration_s` is what the tool printed;
    `usable` and `why` come from the parser.
    """

    tool: str
    load_model: Literal["open", "closed"]
    latency_basis: Literal["response_time", "service_time"]
    requested_duration_s: float | None = None
    duration_s: float | None = None
    requests: int | None = None
    throughput_rps: float | None = None
    offered_rate_rps: float | None = None
    connections: int | None = None
    threads: int | None = None
    errors_connect: int | None = None
    errors_read: int | None = None
    errors_write: int | None = None
    errors_timeout: int | None = None
    errors_status: int | None = None
    errors_other: int | None = None
    latency_mean_ms: float | None = None
    latency_stdev_ms: float | None = None
    latency_max_ms: float | None = None
    thread_rps_mean: float | None = None
    usable: bool = True
    why: str | None = None

    @property
    def errors_by_kind(self) -> dict[str, int]:
        """The kinds that the tool counts, with their counts."""
        kinds = {
            "connect": self.errors_connect,
            "read": self.errors_read,
            "write": self.errors_write,
            "timeout": self.errors_timeout,
            "status": self.errors_status,
            "other": self.errors_other,
        }
        return {kind: count for kind, count in kinds.items() if count is not None}

    @property
    def measured_s(self) -> float | None:
        """How long load was counted: requests / throughput, because tools round the duration that they print."""
        if self.requests and self.throughput_rps:
            return self.requests / self.throughput_rps
        return self.duration_s

    @property
    def window_s(self) -> float | None:
        """The length of the measured window: as asked for, else as measured."""
        return self.requested_duration_s or self.measured_s


@dataclass(frozen=True)
class HostFigures:
    """What was seen on the hosts during the measured window. None = not seen; unknown is never success.

    Busy ratios are of the CPU set that the process may use (1.0 = all of it). `network_stalled_s` counts the seconds in
    which the SUT received less than a tenth of its median packet rate. `boot_id_changed` is of either host.
    """

    exit_status: int | None = None
    boot_id_changed: bool | None = None
    driver_cpu_mean_ratio: float | None = None
    driver_cpu_max_ratio: float | None = None
    driver_thread_max_ratio: float | None = None
    sut_cpu_mean_ratio: float | None = None
    steal_ratio: float | None = None
    swap_pages: int | None = None
    governor: str | None = None
    network_stalled_s: float | None = None
    clock_offset_s: float | None = None
    shared_cpus: bool | None = None


@dataclass(frozen=True)
class Thresholds:
    """The limits of the checks; the defaults and their sources are listed in docs/verdicts.md."""

    error_budget_ratio: float = 0.0
    connect_error_ratio: float = 0.01
    saturated_below_ratio: float = 0.99
    nearly_saturated_below_ratio: float = 0.995
    stopped_early_ratio: float = 0.95
    short_duration_ratio: float = 0.02
    little_tolerance_ratio: float = 0.25
    stall_gap_ratio: float = 1.5
    driver_cpu_ratio: float = 0.80
    # A thread that never waits is seen at slightly less than 1.0 because sampling cuts its first and last tick.
    driver_thread_ratio: float = 0.99
    driver_cpu_invalid: bool = False
    sut_cpu_ratio: float = 0.90
    steal_warn_ratio: float = 0.01
    steal_invalid_ratio: float = 0.05
    network_stall_invalid_ratio: float = 0.10
    clock_warn_s: float = 0.5
    clock_invalid_ratio: float = 0.01


DEFAULT_THRESHOLDS = Thresholds()


def percent(ratio: float, digits: int = 0) -> str:
    """A ratio as it reads in a sentence: 0.309 is "31 %", or "30.9 %" with one digit."""
    return f"{ratio * 100:.{digits}f} %"
