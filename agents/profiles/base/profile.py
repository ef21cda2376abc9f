"""A folded profile: each distinct stack once, with its weight, as indexes into a dictionary of frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agents.profiles.base.slices import Slices

Weights = NDArray[np.float64]
Indexes = NDArray[np.int32]
Edges = NDArray[np.int64]
Unit = Literal["samples", "nanoseconds", "bytes", "events"]
"""What a weight counts: samples taken, CPU or wall time, bytes allocated, or events of another kind (cycles)."""

UNKNOWN = "[unknown]"
"""The name of a frame whose function the profiler could not tell."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function, and its `place` where the profile says it: its source file or library."""

    name: str
    place: str = ""

    @property
    def label(self) -> str:
        """Both as one text, as py-spy writes them: `parse (busy.py)`."""
        return f"{self.name} ({self.place})" if self.place else self.name


@dataclass(frozen=True)
class About:
    """What a profile says of itself; None where it does not say.

    `event` is what was sampled (cpu, wall, alloc, cycles), `engine` what sampled it (perf, async-profiler, py-spy, v8),
    which may differ between two profiles of one tool: without perf_events async-profiler takes a timer, and sees
    no kernel. `window_s` are start and end on the load's clock. `samples` were kept, `lost_samples` were not.
    """

    unit: Unit
    event: str | None = None
    engine: str | None = None
    window_s: tuple[float, float] | None = None
    samples: int | None = None
    lost_samples: int | None = None


@dataclass(frozen=True, eq=False)
class Profile:
    """Stack i is `places[edges[i]:edges[i + 1]]`, indexes into `frames` from the root to the leaf; `weights[i]` is its.

    `slices` says when, None where the file does not tell it of all samples. 100,000 stacks of 40 frames are 17 MB
    without it. The arrays cannot be written to.
    """

    about: About
    frames: tuple[Frame, ...]
    edges: Edges
    places: Indexes
    weights: Weights
    slices: Slices | None = None

    def __post_init__(self) -> None:
        for array in (self.edges, self.places, self.weights):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def weight(self) -> float:
        """The weight of all stacks together, in `about.unit`."""
        return float(self.weights.sum())

    def stacks(self) -> Iterator[tuple[tuple[Frame, ...], float]]:
        """Every stack from its root to its leaf, with its weight in `about.unit`."""
        for at, weight in enumerate(self.weights):
            places = self.places[self.edges[at] : self.edges[at + 1]]
            yield tuple(self.frames[place] for place in places), float(weight)

    def __repr__(self) -> str:
        return f"Profile({len(self)} stacks of {len(self.frames)} frames, {self.about})"
