"""Flame graphs as JSON: the names, the tree of calls in columns, and what each side weighs."""

from __future__ import annotations

from typing import Any

from agents.profiles.base.profile import Frame
from agents.profiles.call_tree import NO_PARENT, CallTree, call_tree
from agents.profiles.names import is_thread, normal_name
from experiments.analysis.function_costs import CostChange, CostVerdict
from experiments.judging.comparing.functions import ComparedFunctions
from experiments.models import RunProfile
from experiments.registry.runs.run_profiles import folded

_DIGITS = 5
VERDICT_WORDS: dict[CostVerdict, str] = {
    "more": "costs more",
    "less": "costs less",
    "not_separated": "not separated from 0",
    "too_few": "too few runs",
}


def run_flame_json(stored: RunProfile) -> dict[str, Any]:
    """The profile of one run as it is; threads of one pool are together."""
    tree = call_tree([[(folded(stored), 1.0)]], _label)
    first = {int(name) for name, parent in zip(tree.name, tree.parent, strict=True) if parent == NO_PARENT}
    threads = sorted((at for at in first if is_thread(Frame(tree.names[at]))), key=lambda at: tree.names[at])
    return {**_tree_json(tree), "unit": stored.unit, "cost_us": stored.cost_us, "threads": threads}


def compared_flame_json(found: ComparedFunctions) -> dict[str, Any]:
    """Both sides in one tree; what each function's own cost is judged to have done colours its frames."""
    changes = found.changes
    tree = found.tree()
    rows: dict[str, CostChange] = {row.name: row for row in changes.own} if changes else {}
    judged = [rows[name].verdict if name in rows else "not_separated" for name in tree.names]
    scale = 1.0 if changes else 100.0
    return {
        **_tree_json(tree, scale),
        "unit": "us" if changes else "pct",
        "sides": [found.baseline.name, found.candidate.name],
        "verdicts": judged,
        "words": [VERDICT_WORDS[rows[name].verdict] if name in rows else "" for name in tree.names],
    }


def _tree_json(tree: CallTree, scale: float = 1.0) -> dict[str, Any]:
    return {
        "names": list(tree.names),
        "parent": tree.parent.tolist(),
        "name": tree.name.tolist(),
        "own": [[_short(value * scale) for value in side.tolist()] for side in tree.own],
    }


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}") if value else 0


def _label(frame: Frame) -> str:
    return normal_name(frame) if is_thread(frame) else frame.label
