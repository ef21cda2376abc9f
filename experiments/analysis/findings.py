"""What the validity checks read and say: figures of the load, figures of the hosts, limits, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from experiments.analysis.thresholds import DEFAULT_THRESHOLDS, Thresholds

__all__ = ["DEFAULT_THRESHOLDS", "Thresholds"]

RECORDED = "requests per second, as the load tool recorded them"
"""What the values of a course are that the tool itself kept."""
Level = Literal["ok", "warn", "invalid", "skipped"]
State = Literal["valid", "suspect", "invalid"]


@dataclass(frozen=True)
class Finding:
    """One check: its result in one plain sentence, the numbers behind it, and where the rule comes from.

    skipped = this host or tool does not show what the check needs; it says why, and counts neither for nor against the
    run. `thresholds` are the limits that were used.
    """

    check: str
    level: Level
    sentence: str
    evidence: Mapping[str, float | str]
    source: str
    thresholds: Mapping[str, float] = field(default_factory=dict)


def skipped(check: str, why: str, source: str = "") -> Finding:
    """A check that could not be made, and why."""
    return Finding(check, "skipped", f"Not checked: {why}.", {}, source)


@dataclass(frozen=True)
class Course:
    """The load over time: `source` says in words what the values are, `at_s` counts from the start of measuring.

    Each value is the rate per second of `step_s` around its time; None = as far apart as the samples usually are.
    `complete`: every request is in it, so that where it has no value there was none; else nobody looked.
    """

    source: str
    at_s: Sequence[float]
    values: Sequence[float]
    step_s: float | None = None
    complete: bool = False


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
class ToolHabits:
    """What the checks must know of a load tool, as whoever knows the tool hands it in.

    `queues_due`: it sends late what it could not send in time; others drop it or open another connection.
    `back_to_back`: each of its connections always waits for one answer, so it asks for all that the SUT can give.
    `omits_late_answers`: answers that come after its timeout are missing from its latency.
    `thread_rate_sample_ms`: how long it counts for one sample of a thread's rate; None where it has no such samples.
    `timeouts_note`: what its count of timeouts counts, as a sentence, where that is not requests.
    """

    queues_due: bool = False
    back_to_back: bool = False
    omits_late_answers: bool = False
    thread_rate_sample_ms: float | None = None
    timeouts_note: str = ""


@dataclass(frozen=True)
class LoadFigures:
    """One driver report of the measured phase. None = the tool does not say or does not count.

    `requested_duration_s` was asked for, `least_duration_s` is the least that the tool's header or command line can
    mean, where nobody else knows; `duration_s` is what the tool printed; `has_own_figures`: a team's own beside;
    `usable` and `why` come from the parser. `tool` is a name for sentences, `habits` is what decides.
    """

    tool: str
    load_model: Literal["open", "closed"]
    latency_basis: Literal["response_time", "service_time"]
    requested_duration_s: float | None = None
    least_duration_s: float | None = None
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
    dropped_iterations: int | None = None
    thresholds_failed: str | None = None
    thresholds_passed: str | None = None
    has_own_figures: bool = False
    usable: bool = True
    why: str | None = None
    habits: ToolHabits = ToolHabits()

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
    def unanswered(self) -> int:
        """Requests that were sent and got no answer, so that they are not among `requests`: docs/validity.md."""
        if self.habits.timeouts_note:
            return 0  # it counts something else than requests
        counts = (self.errors_connect, self.errors_read, self.errors_write, self.errors_timeout, self.errors_other)
        return sum(count or 0 for count in counts)

    @property
    def hides_unknown_backlog(self) -> bool:
        """Whether the tool sends late what it could not send in time, and how much that was cannot be told."""
        return self.habits.queues_due and self.load_model == "open" and not self.offered_rate_rps

    @property
    def cycle_s(self) -> float:
        """Seconds between two requests of a connection or user in a closed loop; 0 = unknown (docs/validity.md)."""
        if self.load_model == "open" or not self.throughput_rps:
            return 0.0
        return self.connections / self.throughput_rps if self.connections else (self.latency_mean_ms or 0.0) / 1000

    @property
    def window_s(self) -> float | None:
        """The length of the measured window: as asked for, else as measured."""
        return self.requested_duration_s or self.measured_s


@dataclass(frozen=True)
class GcPauses:
    """The JVM's stops for garbage collection inside the measured window. `cut`: the log may have lost earlier ones.

    Of several `instances` it is the one that paused longest; `full` collections are those of all.
    """

    count: int
    total_s: float
    longest_ms: float
    full: int
    cut: bool = False
    instances: int = 1


@dataclass(frozen=True)
class ThreadGroup:
    """The server's threads of one name: how many there are, and the CPUs that they used together."""

    name: str
    threads: int
    cpus: float


@dataclass(frozen=True)
class RecordedCpu:
    """How busy the CPUs of the server (on a driver host those of the load tool) were by a recorder, and by BenchHub.

    None = no sample in the window. `role` is `sut`, `driver`, `driver-2` and so on.
    """

    tool: str
    role: str
    recorded_ratio: float | None
    own_ratio: float | None


@dataclass(frozen=True)
class CpuQuota:
    """The control group of the server or of a load tool allows `cpus`; in `throttled_ratio` of the kernel's periods in
    the window the process was stopped because it had used them up (None = not seen). `role` is sut or driver."""

    host: str
    role: str
    cpus: float
    throttled_ratio: float | None


@dataclass(frozen=True)
class HostFigures:
    """What was seen on the hosts during the measured window. None = not seen; unknown is never success.

    Busy ratios are of the CPUs that the process may use, by its CPU set and its control group (1.0 = all of them),
    `neighbours_ratio` is what others used of the server's. `network_stalled_s` counts the seconds in which the card
    that carried the load received less than a tenth of what it did while load came. `boot_id_changed` is of either
    host. `clock_offset_s` is what the round trip `clock_round_trip_s` cannot explain of the measured
    `clock_midpoint_s`. `*_unseen_s` are the seconds without samples of that host.
    Of several driver hosts the figures are those of the worst one, and `busiest_driver` is the name of that with the
    fullest CPUs. `start_spread_s` is how far apart several load tools began.
    `request_threads` and `poller_thread` are the names among `threads` that the server has for these two.
    `unknown` says for a check why its figures are not there.
    Of a system of several hosts, `role` is what the loaded server is, and `members` has the machines of the further
    ones by role; in these `called` is what sentences call the machine, and `sut_unseen_s` is of that one.
    """

    role: str = ""
    called: str = "the SUT"
    exit_status: int | None = None
    boot_id_changed: bool | None = None
    driver_cpu_mean_ratio: float | None = None
    driver_cpu_max_ratio: float | None = None
    driver_thread_max_ratio: float | None = None
    busiest_driver: str = ""
    start_spread_s: float | None = None
    several_tools: bool | None = None
    sut_cpu_mean_ratio: float | None = None
    neighbours_ratio: float | None = None
    steal_ratio: float | None = None
    swap_pages: int | None = None
    memory_available_ratio: float | None = None
    governor: str | None = None
    mean_mhz: float | None = None
    throttle_count: int | None = None
    quotas: tuple[CpuQuota, ...] = ()
    cpu_nodes: tuple[int, ...] = ()
    nic: str = ""
    nic_node: int | None = None
    new_connections_per_s: float | None = None
    local_ports: int | None = None
    gc: GcPauses | None = None
    threads: tuple[ThreadGroup, ...] = ()
    request_threads: str = ""
    poller_thread: str = ""
    server_cpus: int = 0
    network_stalled_s: float | None = None
    clock_offset_s: float | None = None
    clock_midpoint_s: float | None = None
    clock_round_trip_s: float | None = None
    shared_cpus: bool | None = None
    sut_unseen_s: float | None = None
    driver_unseen_s: float | None = None
    recorded_cpus: tuple[RecordedCpu, ...] = ()
    member_uses: Mapping[str, float | None] = field(default_factory=dict)
    member_own: Mapping[str, float | None] = field(default_factory=dict)
    members: Mapping[str, HostFigures] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


def percent(ratio: float, digits: int = 0) -> str:
    """A ratio as it reads in a sentence: 0.309 is "31 %", or "30.9 %" with one digit."""
    return f"{ratio * 100:.{digits}f} %"


def known(**values: float | str | None) -> dict[str, float | str]:
    """The values that are known, as evidence."""
    return {name: value for name, value in values.items() if value is not None}
