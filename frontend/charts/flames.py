"""Flame graphs as the page reads them: what is said of the tree as JSON, and the tree itself in columns of bytes.

Two million frames are 32 MB so; as JSON the browser alone would need seconds for them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from agents.profiles.base.profile import Frame
from agents.profiles.base.slices import Slices
from agents.profiles.call_tree import NO_PARENT, CallTree, call_tree
from agents.profiles.names import is_thread, normal_name
from experiments.analysis.function_costs import CostChange, CostVerdict
from experiments.judging.comparing.functions import ComparedFunctions
from experiments.models import RunProfile
from experiments.registry.runs.run_profiles import folded

ALIGNED = 8
VERDICT_WORDS: dict[CostVerdict, str] = {
    "more": "costs more",
    "less": "costs less",
    "not_separated": "not separated from 0",
    "too_few": "too few runs",
}


def run_flame(stored: RunProfile) -> bytes:
    """The profile of one run as it is; threads of one pool are together."""
    profile = folded(stored)
    tree = call_tree([[(profile, 1.0)]], _label)
    first = {int(name) for name in tree.name[tree.parent == NO_PARENT]}
    threads = sorted((at for at in first if is_thread(Frame(tree.names[at]))), key=lambda at: tree.names[at])
    said = {"unit": stored.unit, "cost_us": stored.cost_us, "threads": threads, "on_load": stored.start_s is not None}
    return packed_tree(tree, said, slices=profile.slices)


def compared_flame(found: ComparedFunctions) -> bytes:
    """Both sides in one tree; what each function's own cost is judged to have done colours its frames."""
    changes = found.changes
    tree = found.tree()
    rows: dict[str, CostChange] = {row.name: row for row in changes.own} if changes else {}
    said = {
        "unit": "us" if changes else "pct",
        "sides": [found.baseline.name, found.candidate.name],
        "verdicts": [rows[name].verdict if name in rows else "not_separated" for name in tree.names],
        "words": [VERDICT_WORDS[rows[name].verdict] if name in rows else "" for name in tree.names],
    }
    return packed_tree(tree, said, 1.0 if changes else 100.0)


def packed_tree(tree: CallTree, said: dict[str, Any], scale: float = 1.0, slices: Slices | None = None) -> bytes:
    """The length of the head (8 bytes), the head as JSON, then parents, names (32 bit), what each side weighs.

    Slices of time follow, when the tree is of one profile that has them: weights, then the node of each. Node 0 is all
    of it, the tree's own nodes follow it. Little-endian, the head filled up with blanks to 8 bytes.
    """
    count = len(tree) + 1
    said = {**said, "names": list(tree.names), "nodes": count, "count": len(tree.own)}
    behind = b""
    if slices is not None:
        said["slices"] = {"start_s": slices.start_s, "step_s": slices.step_s, "edges": slices.edges.tolist()}
        nodes = (tree.ends[slices.stacks] + 1).astype("<i4")
        behind = (slices.weights * scale).astype("<f8").tobytes() + nodes.tobytes()
    head = json.dumps(said).encode()
    head += b" " * (-len(head) % ALIGNED)
    parent = np.concatenate([[NO_PARENT], tree.parent + 1]).astype("<i4")
    name = np.concatenate([[-1], tree.name]).astype("<i4")
    own = np.concatenate([np.zeros((len(tree.own), 1)), tree.own * scale], axis=1).astype("<f8")
    return b"".join(
        [len(head).to_bytes(ALIGNED, "little"), head, parent.tobytes(), name.tobytes(), own.tobytes(), behind]
    )


def _label(frame: Frame) -> str:
    return normal_name(frame) if is_thread(frame) else frame.label
