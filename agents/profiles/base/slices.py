"""When the samples of a profile were taken: its time in up to 60 slices, each with the stacks that were seen in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_SLICES = 60
_LEAST_S = 1e-6
"""What lies closer together has no course in time."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Slice i begins at `start_s + i * step_s` and has the entries from `edges[i]` to `edges[i + 1]`: entry j is of
    stack `stacks[j]` of the profile and weighs `weights[j]`, in its unit. All slices together weigh what it weighs.

    `start_s` is on the clock of the profile's file, and on the load's once the profile is stored.
    """

    start_s: float
    step_s: float
    edges: NDArray[np.int64]
    stacks: NDArray[np.int32]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        for array in (self.edges, self.stacks, self.weights):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.edges) - 1


def sliced(
    stacks: NDArray[np.int32],
    begins_s: NDArray[np.float64],
    ends_s: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> Slices | None:
    """Samples, or spans of time in a stack, as slices from the first to the last of them; None: all are at one moment.

    Arrays of one length, an entry for each: `stacks` are indexes into the profile's stacks, `begins_s` and `ends_s` are
    seconds of one clock, `weights` is in the profile's unit. What spans several slices is divided among them by its
    time in each.
    """
    if not len(stacks):
        return None
    start_s, end_s = float(begins_s.min()), float(ends_s.max())
    step_s = (end_s - start_s) / MOST_SLICES
    if step_s * MOST_SLICES < _LEAST_S:
        return None
    first, last = (
        np.clip((at_s - start_s) / step_s, 0, MOST_SLICES - 1).astype(np.int64) for at_s in (begins_s, ends_s)
    )
    within = first == last
    parts = [(first[within], stacks[within], weights[within])]
    across = ~within
    if across.any():
        begins, ends, many, weighed = begins_s[across], ends_s[across], stacks[across], weights[across]
        for at in range(MOST_SLICES):
            left_s = start_s + at * step_s
            right_s = end_s if at == MOST_SLICES - 1 else left_s + step_s
            shared = np.clip(np.minimum(ends, right_s) - np.maximum(begins, left_s), 0, None) / (ends - begins)
            some = shared > 0
            parts.append((np.full(some.sum(), at), many[some], (weighed * shared)[some]))
    of_slice, of_stack, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    size = int(of_stack.max()) + 1
    keys, place = np.unique(of_slice * size + of_stack, return_inverse=True)
    summed = np.bincount(place, weight, len(keys)).astype(np.float64)
    kept = summed > 0
    keys, summed = keys[kept], summed[kept]
    edges = np.searchsorted(keys // size, np.arange(MOST_SLICES + 1)).astype(np.int64)
    return Slices(start_s, step_s, edges, (keys % size).astype(np.int32), summed)
