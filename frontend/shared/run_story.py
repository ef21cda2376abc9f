"""A run's events as the run page tells them: phases, tuning journal, restore proof."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.events import (
    PHASES,
    AnyEvent,
    Failed,
    LoadStarted,
    PhaseFinished,
    PhaseName,
    PhaseStarted,
    Restored,
    StepApplied,
    StepIntended,
    StepReverted,
    from_json,
)
from experiments.models import Run

PHASE_LABELS: dict[PhaseName, str] = {
    "connect": "Connect",
    "facts": "Facts",
    "snapshot": "Snapshot",
    "tune": "Tune",
    "start": "Start server",
    "warm_up": "Warm up",
    "measure": "Measure",
    "collect": "Collect",
    "stop": "Stop server",
    "restore": "Restore",
    "verify": "Verify",
}
STORY_KINDS = (
    "phase_started",
    "phase_finished",
    "step_intended",
    "step_applied",
    "step_reverted",
    "load_started",
    "failed",
    "restored",
)
"""The kinds that the story needs; samples, log lines and tool outputs are not read for it."""

FILE_CONTENT = "content"
"""The setting that holds a whole file, which perhaps root alone may read: no page shows it."""


@dataclass(frozen=True)
class PhaseState:
    """`state` is done, now, failed or todo; `from_unix_s` is by the controller's clock, None before it began."""

    label: str
    state: str
    duration_s: float | None
    from_unix_s: float | None = None


@dataclass(frozen=True)
class JournalRow:
    """One setting of one tuning step. `result` is empty while, or because, it was never read back."""

    step: int
    title: str
    setting: str
    wanted: str | None
    before: str | None
    effective: str | None
    result: str
    detail: str
    reverted: bool


@dataclass(frozen=True)
class Story:
    """`measure_from_unix_s` is t = 0 of the charts."""

    phases: tuple[PhaseState, ...]
    journal: tuple[JournalRow, ...]
    differences: tuple[str, ...] | None
    reverted_steps: int
    intended_steps: int
    measure_from_unix_s: float | None
    measure_for_s: int | None
    failed_phase: str


def story_of(run: Run) -> Story:
    """The story of a stored run, in one query."""
    payloads = run.events.filter(kind__in=STORY_KINDS).order_by("seq").values_list("payload", flat=True)
    return tell([from_json(payload) for payload in payloads], live=run.is_live)


def tell(events: Sequence[AnyEvent], *, live: bool) -> Story:
    failed = next((e for e in events if isinstance(e, Failed)), None)
    restored = next((e for e in reversed(events) if isinstance(e, Restored)), None)
    measured = next((e for e in events if isinstance(e, LoadStarted) and e.measured), None)
    intended = [e for e in events if isinstance(e, StepIntended)]
    reverted = {e.index for e in events if isinstance(e, StepReverted)}
    return Story(
        phases=_phases(events, failed, live),
        journal=tuple(_journal(intended, {e.index: e for e in events if isinstance(e, StepApplied)}, reverted)),
        differences=tuple(text for left in restored.differences.values() for text in left) if restored else None,
        reverted_steps=len(reverted),
        intended_steps=len({e.index for e in intended}),
        measure_from_unix_s=measured.at_unix_s if measured else None,
        measure_for_s=measured.duration_s if measured else None,
        failed_phase=PHASE_LABELS[failed.phase] if failed else "",
    )


def _phases(events: Iterable[AnyEvent], failed: Failed | None, live: bool) -> tuple[PhaseState, ...]:
    started: dict[PhaseName, float] = {}
    took_s: dict[PhaseName, float] = {}
    for event in events:
        if isinstance(event, PhaseStarted):
            started.setdefault(event.phase, event.at_unix_s)
        elif isinstance(event, PhaseFinished):
            took_s[event.phase] = event.duration_s
    found = []
    for phase in PHASES:
        if failed is not None and failed.phase == phase:
            state = "failed"
        elif phase in took_s:
            state = "done"
        elif phase in started:
            state = "now" if live else "failed"
        else:
            state = "todo"
        # Old runs did not say when a phase began.
        found.append(PhaseState(PHASE_LABELS[phase], state, took_s.get(phase), started.get(phase) or None))
    return tuple(found)


def _journal(
    intended: Iterable[StepIntended], applied: dict[int, StepApplied], reverted: set[int]
) -> Iterable[JournalRow]:
    for step in {e.index: e for e in intended}.values():
        done = applied.get(step.index)
        undone = step.index in reverted
        if done is None:
            for setting, before in step.before.items():
                shown = None if setting == FILE_CONTENT else before
                yield JournalRow(step.index, step.title, setting, None, shown, None, "", "", undone)
            continue
        for outcome in done.outcomes:
            yield JournalRow(
                step=step.index,
                title=step.title,
                setting=outcome.setting,
                wanted=outcome.wanted,
                before=outcome.before,
                effective=outcome.effective,
                result=outcome.result,
                detail=outcome.detail,
                reverted=undone,
            )
