"""Several profiles as one tree of calls, with what each side of it weighs: what flame graphs are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.profiles.base.profile import Frame, Indexes, Profile

NO_PARENT = -1
Sides = Sequence[Sequence[tuple[Profile, float]]]
"""The profiles of each side, each with the factor that its weights are multiplied by."""


@dataclass(frozen=True, eq=False)
class CallTree:
    """Node i is `names[name[i]]`, called by node `parent[i]`, which comes before it; `NO_PARENT` for the first frames.

    `own[side, i]` is the weight of the stacks that end there, in the unit of the profiles times their factors. Stacks
    that differ make different paths, so that no stack is lost however little it weighs. `ends` are the nodes where the
    stacks of all profiles end, in their order.
    """

    names: tuple[str, ...]
    parent: Indexes
    name: Indexes
    own: NDArray[np.float64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parent)


def call_tree(sides: Sides, label: Callable[[Frame], str]) -> CallTree:
    """The tree of these profiles, frames of one `label` being the same; two sides make a differential flame graph.

    Level by level, so that its cost grows with the frames of all stacks, and a stack of 4,000 frames does no harm.
    """
    names: dict[str, int] = {}
    parts = []
    for side, profiles in enumerate(sides):
        for profile, factor in profiles:
            known = [names.setdefault(label(frame), len(names)) for frame in profile.frames]
            of_frame = np.array(known, np.int32)
            lengths = np.diff(profile.edges)
            parts.append((of_frame[profile.places], lengths, profile.weights * factor, np.full(len(lengths), side)))
    if not parts:
        nothing = np.zeros(0, np.int32)
        return CallTree((), nothing, nothing, np.zeros((len(sides), 0)), np.zeros(0, np.int64))
    places, lengths, weights, of_side = (np.concatenate(column) for column in zip(*parts, strict=True))
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
    at = np.full(len(lengths), NO_PARENT, np.int64)
    live = np.arange(len(lengths))
    parents, of_names, made, depth = [], [], 0, 0
    while len(live):
        key = (at[live] + 1) * len(names) + places[starts[live] + depth]
        nodes, place = np.unique(key, return_inverse=True)
        parents.append(nodes // len(names) - 1)
        of_names.append(nodes % len(names))
        at[live] = made + place
        made += len(nodes)
        depth += 1
        live = live[lengths[live] > depth]
    own = np.stack(
        [np.bincount(at, np.where(of_side == side, weights, 0.0), made).astype(float) for side in range(len(sides))]
    )
    parent, name = (np.concatenate(column).astype(np.int32) for column in (parents, of_names))
    return CallTree(tuple(names), parent, name, own, at)
