"""What happens in a run, as facts in the past tense. The recorder stores them; a record is folded from them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from agents.base.errors import Cause
from agents.base.setting_outcome import SettingOutcome
from agents.results.spectrum import Spectrum

Role = Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]{0,11}|driver(-[2-9]|-[1-9][0-9]))$")]
"""A host's part in a run: `sut`, the role of a member such as `database`, `driver`, `driver-2` (`RunSpec.hosts`)."""
PhaseName = Literal[
    "connect", "facts", "snapshot", "tune", "start", "warm_up", "measure", "collect", "stop", "restore", "verify"
]
PHASES: tuple[PhaseName, ...] = (
    "connect", "facts", "snapshot", "tune", "start", "warm_up", "measure", "collect", "stop", "restore", "verify",
)  # fmt: skip


@dataclass(frozen=True)
class PhaseStarted:
    """`at_unix_s` is the run's clock; a worker that goes on with a phase says so with another event."""

    phase: PhaseName
    at_unix_s: float = 0.0
    kind: Literal["phase_started"] = "phase_started"


@dataclass(frozen=True)
class PhaseFinished:
    phase: PhaseName
    duration_s: float
    kind: Literal["phase_finished"] = "phase_finished"


@dataclass(frozen=True)
class FactsCollected:
    """`profile` is the stable part of the facts, flat; `directory` the run's own one on that host, and `claim` the file
    by which other logins know that the machine is taken.

    `clock_midpoint_s` is the host's clock against the run's at the middle of a round trip, wrong by at most half
    of `clock_round_trip_s`; `clock_offset_s` is what of it the round trip cannot explain.
    """

    role: Role
    digest: str
    profile: Mapping[str, str]
    directory: str
    boot_id: str
    clock_offset_s: float | None = None
    tool_version: str = ""
    clock_midpoint_s: float | None = None
    clock_round_trip_s: float | None = None
    claim: str = ""
    kind: Literal["facts_collected"] = "facts_collected"


@dataclass(frozen=True)
class SnapshotTaken:
    """The settings of a host with a server before the first change and after the last undo, volatile keys left out."""

    moment: Literal["before", "after"]
    values: Mapping[str, str]
    role: Role = "sut"
    kind: Literal["snapshot_taken"] = "snapshot_taken"


@dataclass(frozen=True)
class StepIntended:
    """Journal entry: stored before the host is touched. `undo` is the shell text that puts `before` back."""

    index: int
    title: str
    before: Mapping[str, str | None]
    undo: tuple[str, ...]
    kind: Literal["step_intended"] = "step_intended"


@dataclass(frozen=True)
class StepApplied:
    index: int
    outcomes: tuple[SettingOutcome, ...]
    effective: Mapping[str, str | None]
    kind: Literal["step_applied"] = "step_applied"


@dataclass(frozen=True)
class StepReverted:
    index: int
    kind: Literal["step_reverted"] = "step_reverted"


@dataclass(frozen=True)
class JobStarted:
    """A detached process on a host: `name` is `server` or `load-0`; the identity is pid + start time + boot_id."""

    name: str
    role: Role
    directory: str
    pid: int | None
    cookie: str
    kind: Literal["job_started"] = "job_started"


@dataclass(frozen=True)
class JobIntended:
    """Stored before a job is started, so that whoever comes next knows its cookie and can end it.

    `begins_at_uptime_s`: the job waits for this moment, in seconds since its host was started; None = begins at once.
    `clock_error_s` is by how much that may be wrong against the other hosts.
    """

    name: str
    role: Role
    directory: str
    cookie: str
    privileged: bool = False
    begins_at_uptime_s: float | None = None
    clock_error_s: float = 0.0
    kind: Literal["job_intended"] = "job_intended"


@dataclass(frozen=True)
class JobEnded:
    name: str
    exit_status: int | None
    kind: Literal["job_ended"] = "job_ended"


@dataclass(frozen=True)
class LoadStarted:
    """Load of phase `index` begins; `at_unix_s` is t = 0 of the charts for the measured one."""

    index: int
    measured: bool
    duration_s: int
    at_unix_s: float
    kind: Literal["load_started"] = "load_started"


@dataclass(frozen=True)
class ResultFile:
    """A tool's result file as it was on the driver host; `kept` names the artifact that holds it, "" = none does."""

    name: str
    size_bytes: int
    sha256: str
    kept: str


@dataclass(frozen=True)
class LoadPart:
    """What one of several load tools reported that ran at the same time.

    `late_s`: how long after the agreed start it began, None when nobody knows; wrong by at most `clock_error_s` against
    the tools of other hosts.
    """

    url: str
    exit_status: int | None
    report: Mapping[str, Any]
    result_file: ResultFile | None = None
    role: Role = "driver"
    late_s: float | None = None
    clock_error_s: float = 0.0


@dataclass(frozen=True)
class LoadReported:
    """The tool's whole output, its sha256, and the figures read from it (`LoadReport.to_json`).

    `spectrum` is the histogram of its latency; None when the tool gave none. `parts` are the reports of several tools
    that ran at the same time; the figures above are then those of all together. `start_spread_s` is how far apart they
    began at most; None for a single tool, and where a tool's start was not seen.
    """

    index: int
    measured: bool
    exit_status: int | None
    output: str
    sha256: str
    report: Mapping[str, Any]
    result_file: ResultFile | None = None
    spectrum: Spectrum | None = None
    parts: tuple[LoadPart, ...] = ()
    start_spread_s: float | None = None
    kind: Literal["load_reported"] = "load_reported"


@dataclass(frozen=True)
class Samples:
    """Readings of one host. `at_unix_s` is the run's clock; channel name -> (unit, value)."""

    role: Role
    at_unix_s: float
    values: Mapping[str, tuple[str, float]]
    kind: Literal["samples"] = "samples"


@dataclass(frozen=True)
class GcPausesRead:
    """The stops of an instance's JVM since it started, by the SUT's clock. `cut`: there were more before them.

    `course`: channel -> when, by the same clock, and what (`agents.formats.jvm_log`).
    """

    at_unix_s: tuple[float, ...]
    pause_ms: tuple[float, ...]
    full: tuple[bool, ...]
    cut: bool = False
    instance: int = 0
    role: Role = "sut"
    course: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(default_factory=dict)
    kind: Literal["gc_pauses_read"] = "gc_pauses_read"


@dataclass(frozen=True)
class RecordingKept:
    """The file of a recorder as it was on the host; `kept` names the artifact that holds it."""

    role: Role
    recorder: str
    kept: str
    size_bytes: int
    sha256: str
    kind: Literal["recording_kept"] = "recording_kept"


@dataclass(frozen=True)
class ProfileTaken:
    """What a profiler took of a server in a window of the measured load; `file` names the artifact that holds it.

    `role` is "" for the server that is loaded. `start_s` and `end_s` are on the load's clock, `cpu_time_s` is that of
    all of the server's processes in between, `requests` those answered in between (None: the tool counts none).
    `engine` is what really sampled. `counters` are the figures of a profiler that only counts.
    """

    role: str
    profiler: str
    event: str
    engine: str
    start_s: float
    end_s: float
    cpu_time_s: float
    requests: int | None
    samples: int | None
    lost_samples: int | None
    file: str
    counters: Mapping[str, float] = field(default_factory=dict)
    kind: Literal["profile_taken"] = "profile_taken"


@dataclass(frozen=True)
class ConfigurationCaptured:
    """What the machines really had, flat `section.path` -> value."""

    values: Mapping[str, str]
    kind: Literal["configuration_captured"] = "configuration_captured"


@dataclass(frozen=True)
class Logged:
    """Lines for people; `source` is runner, server, driver or a host's name."""

    source: str
    lines: tuple[str, ...]
    level: Literal["info", "warning", "error"] = "info"
    kind: Literal["logged"] = "logged"


@dataclass(frozen=True)
class Failed:
    phase: PhaseName
    message: str
    hint: str = ""
    cancelled: bool = False
    cause: Cause = "benchhub"
    kind: Literal["failed"] = "failed"


@dataclass(frozen=True)
class Restored:
    """The end of the undo: what on each host is not as before, in plain words; a host without any is proven equal.

    `away` are the hosts that could not be reached: looking again later may prove them equal.
    """

    differences: Mapping[Role, tuple[str, ...]]
    away: tuple[Role, ...] = ()
    kind: Literal["restored"] = "restored"


AnyEvent = Annotated[
    PhaseStarted
    | PhaseFinished
    | FactsCollected
    | SnapshotTaken
    | StepIntended
    | StepApplied
    | StepReverted
    | JobIntended
    | JobStarted
    | JobEnded
    | LoadStarted
    | LoadReported
    | Samples
    | GcPausesRead
    | RecordingKept
    | ProfileTaken
    | ConfigurationCaptured
    | Logged
    | Failed
    | Restored,
    Field(discriminator="kind"),
]
EVENTS: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


def to_json(event: AnyEvent) -> dict[str, Any]:
    """The event as JSON data, its `kind` in it."""
    data: dict[str, Any] = EVENTS.dump_python(event, mode="json")
    if isinstance(event, SnapshotTaken | GcPausesRead) and event.role == "sut":
        del data["role"]  # as before there were members
    return data


def from_json(data: Mapping[str, Any]) -> AnyEvent:
    """The event that `to_json` made this of; pydantic's ValidationError when it is none."""
    return EVENTS.validate_python(data)
