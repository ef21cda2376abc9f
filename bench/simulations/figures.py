"""A simulated figure beside what it should be, and a section of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

PUBLISHED_TRIALS = 2000


class Simulated(Protocol):
    """What a section prints a row for."""

    @property
    def holds(self) -> bool: ...

    def row(self) -> str: ...


@dataclass(frozen=True)
class Figure:
    """A simulated share beside the published one (or the two ends of a published range).

    It holds when it is no further off than the chance of both simulations allows: four standard errors of their
    difference, and half a digit.
    """

    what: str
    ours: float
    trials: int
    low: float
    high: float
    digit: float = 0.01

    @property
    def holds(self) -> bool:
        spread = max(share * (1 - share) for share in (self.ours, self.low, self.high))
        allowed = 4 * math.sqrt(spread / self.trials + spread / PUBLISHED_TRIALS) + self.digit / 2
        return self.low - allowed <= self.ours <= self.high + allowed

    def row(self) -> str:
        published = f"{self.low:.3g}" if self.low == self.high else f"{self.low:.3g} to {self.high:.3g}"
        return f"| {self.what} | {self.ours:.3f} | {published} | | {_said(self.holds)} |"


@dataclass(frozen=True)
class Aim:
    """A simulated share that should be at most, or at least, `aim`; `before` is what it was when the aim was set.

    No allowance for chance is made: the trials must be enough to tell.
    """

    what: str
    ours: float
    aim: float
    bound: Literal["at most", "at least"]
    before: float | None = None

    @property
    def holds(self) -> bool:
        return self.ours <= self.aim if self.bound == "at most" else self.ours >= self.aim

    def row(self) -> str:
        before = "" if self.before is None else f"{self.before:.3g}"
        return f"| {self.what} | {self.ours:.3f} | {self.bound} {self.aim:.3g} | {before} | {_said(self.holds)} |"


@dataclass(frozen=True)
class Section:
    """Figures of one subject. `simulate` gets a seeded source and the trials: `factor` times those asked for."""

    title: str
    simulate: Callable[[np.random.Generator, int], Sequence[Simulated]]
    factor: float = 1


def _said(holds: bool) -> str:
    return "yes" if holds else "**no**"
