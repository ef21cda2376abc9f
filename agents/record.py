"""A run's record: what its events add up to. Starting a run is resuming it from an empty record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.base.clock import run_clock_s
from agents.events import (
    AnyEvent,
    ConfigurationCaptured,
    FactsCollected,
    Failed,
    GcPausesRead,
    JobEnded,
    JobIntended,
    JobStarted,
    LoadReported,
    LoadStarted,
    PhaseFinished,
    PhaseName,
    PhaseStarted,
    ProfileTaken,
    RecordingKept,
    Restored,
    Role,
    SnapshotTaken,
    StepApplied,
    StepIntended,
    StepReverted,
)


@dataclass
class Record:
    """The state of a run, folded from its events in order."""

    finished_phases: set[PhaseName] = field(default_factory=set)
    phase_began_unix_s: dict[PhaseName, float] = field(default_factory=dict)
    facts: dict[str, FactsCollected] = field(default_factory=dict)
    snapshots: dict[tuple[str, str], SnapshotTaken] = field(default_factory=dict)
    intended: dict[int, StepIntended] = field(default_factory=dict)
    applied: dict[int, StepApplied] = field(default_factory=dict)
    reverted: set[int] = field(default_factory=set)
    jobs: dict[str, JobIntended] = field(default_factory=dict)
    started_jobs: dict[str, JobStarted] = field(default_factory=dict)
    ended_jobs: dict[str, JobEnded] = field(default_factory=dict)
    loads: dict[int, LoadStarted] = field(default_factory=dict)
    reports: dict[int, LoadReported] = field(default_factory=dict)
    configuration: ConfigurationCaptured | None = None
    gc_pauses: dict[tuple[Role, int], GcPausesRead] = field(default_factory=dict)
    recordings: dict[tuple[str, str], RecordingKept] = field(default_factory=dict)
    profiles: dict[tuple[str, str, str], ProfileTaken] = field(default_factory=dict)
    failed: Failed | None = None
    restored: Restored | None = None

    @classmethod
    def fold(cls, events: Iterable[AnyEvent]) -> Record:
        record = cls()
        for event in events:
            record.add(event)
        return record

    def phase_s(self, phase: PhaseName) -> float:
        """For how long the phase has gone on, whoever began it, by the run's clock."""
        return max(0.0, run_clock_s() - self.phase_began_unix_s[phase])

    def add(self, event: AnyEvent) -> None:
        """Take one event in; kinds that leave no state (samples, log lines) pass by."""
        match event:
            case PhaseStarted():
                self.phase_began_unix_s.setdefault(event.phase, event.at_unix_s)
            case PhaseFinished():
                self.finished_phases.add(event.phase)
                self.phase_began_unix_s.pop(event.phase, None)
            case FactsCollected():
                self.facts[event.role] = event
            case SnapshotTaken():
                self.snapshots[event.role, event.moment] = event
            case StepIntended():
                self.intended[event.index] = event
            case StepApplied():
                self.applied[event.index] = event
            case StepReverted():
                self.reverted.add(event.index)
            case JobIntended():
                self.jobs[event.name] = event
            case JobStarted():
                self.started_jobs[event.name] = event
            case JobEnded():
                self.ended_jobs[event.name] = event
            case LoadStarted():
                self.loads.setdefault(event.index, event)
            case LoadReported():
                self.reports[event.index] = event
            case GcPausesRead():
                self.gc_pauses[event.role, event.instance] = event
            case RecordingKept():
                self.recordings[event.role, event.recorder] = event
            case ProfileTaken():
                self.profiles[event.role, event.profiler, event.event] = event
            case ConfigurationCaptured():
                self.configuration = event
            case Failed():
                self.failed = self.failed or event
            case Restored():
                self.restored = event
                self.phase_began_unix_s.clear()
            case _:
                pass
