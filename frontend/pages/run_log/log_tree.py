"""The steps of a run beside its log: phases, the tuning steps and loads in them, and where each begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.registry.logs.log_lines import Outline
from frontend.shared.run_story import PHASE_LABELS


@dataclass
class Branch:
    """A phase, or something in it; `state` is done, now or failed; `problems` counts its warnings and errors."""

    label: str
    line: int
    state: str = "now"
    duration_s: float | None = None
    problems: int = 0
    leaves: list[Branch] = field(default_factory=list)


def tree_of(outline: Outline, *, live: bool) -> list[Branch]:
    """Phases in their order; one that a second worker went on with stands there once."""
    phases: dict[str, Branch] = {}
    now: Branch | None = None
    failed = ""
    for mark in outline.marks:
        name = str(mark.payload.get("phase", ""))
        if mark.kind == "phase_started":
            now = phases.setdefault(name, Branch(_label(name), mark.line))
        elif mark.kind == "phase_finished" and name in phases:
            phases[name].state, phases[name].duration_s = "done", mark.payload["duration_s"]
        elif mark.kind == "failed":
            failed = name
        elif now is not None and (text := _leaf(mark.kind, mark.payload)):
            if text not in [leaf.label for leaf in now.leaves]:
                now.leaves.append(Branch(text, mark.line, state="done"))
        elif now is not None and mark.level != "info":
            now.problems += 1
    for name, branch in phases.items():
        if name == failed or (branch.state == "now" and not live):
            branch.state = "failed"
    return list(phases.values())


def _label(phase: str) -> str:
    return next((label for name, label in PHASE_LABELS.items() if name == phase), phase)


def _leaf(kind: str, payload: Mapping[str, Any]) -> str:
    if kind == "step_intended":
        return f"{payload['index'] + 1}. {payload['title']}"
    if kind == "load_started":
        return f"Load {payload['index'] + 1}, {payload['duration_s']} s" + (" measured" if payload["measured"] else "")
    return ""
