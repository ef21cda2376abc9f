"""What a search is given, the trials that it has made so far, and those that it wants next (docs/tuning.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from experiments.analysis.limits import ALPHA, MARGIN_RATIO
from experiments.analysis.tuning.space import Config, Key, Space

Status = Literal["ok", "invalid", "crashed", "refused"]
Purpose = Literal["control", "explore", "repeat", "confirm", "revert"]

FEWEST_RUNS = 20
MOST_INVALID = 5
"""So many invalid runs in a row end a search: something is wrong that no configuration mends."""
ATTEMPTS = 3
"""So often a run is made that has no figure."""


@dataclass(frozen=True)
class Limit:
    """A metric that a recommended configuration must keep at or below `at_most`, on the mean over all hosts."""

    metric: str
    at_most: float

    def __post_init__(self) -> None:
        if not 0 < self.at_most < math.inf:
            raise ValueError(f"{self.metric}: the limit must be a positive number, not {self.at_most}")


@dataclass(frozen=True)
class Settings:
    """One search. `hosts` equal hosts (or pairs) take its runs; every run counts against `budget_runs`.

    `confirm_host` is the one host that takes the pairs of the confirmation, None = all hosts do; it may be one more.
    `away` are hosts that take no further runs now; while all are, they count as there.
    `margin_ratio` is the smallest gain that anybody would deploy a configuration for. `seed` is the search's number.
    `forgiven`: so many of its first trials end nothing by being invalid, for a person took the search up again.
    `looks`: as often were pairs looked at, now included, to which more budget adds further ones; `looked_at`: so many
    trials there were at the last time.
    """

    space: Space
    default: Config
    higher_is_better: bool
    budget_runs: int
    hosts: int = 1
    confirm_host: int | None = None
    away: frozenset[int] = frozenset()
    limits: tuple[Limit, ...] = ()
    margin_ratio: float = MARGIN_RATIO
    alpha: float = ALPHA
    seed: int = 0
    forgiven: int = 0
    looks: int = 1
    looked_at: int = 0

    def __post_init__(self) -> None:
        self.space.check(self.default)
        if self.budget_runs < FEWEST_RUNS:
            raise ValueError(f"budget_runs: give at least {FEWEST_RUNS} runs; fewer cannot be searched and confirmed")
        if self.hosts < 1:
            raise ValueError("hosts: a search needs one host or more")
        if not 0 < self.margin_ratio < 1 or not 0 < self.alpha < 0.5:
            raise ValueError("margin_ratio lies between 0 and 1, for example 0.03 for 3 %, alpha between 0 and 0.5")

    @property
    def able(self) -> tuple[int, ...]:
        """The hosts that take runs of the search now."""
        return tuple(host for host in range(self.hosts) if host not in self.away) or tuple(range(self.hosts))

    @property
    def confirming(self) -> tuple[int, ...]:
        """The hosts that take pairs of the confirmation now."""
        return self.able if self.confirm_host is None else (self.confirm_host,)

    def level(self, tried: int) -> float:
        """The two-sided level of the finalist number `tried`, from 1: a part of `alpha` for each.

        Each further look has half the level of the one before, so that all of them cost at most twice the first.
        """
        return self.alpha / (tried * 2.0 ** (self.looks - 1))

    @property
    def default_key(self) -> Key:
        return self.space.key(self.default)


@dataclass(frozen=True)
class Trial:
    """One run that ended. Figures are None, or must not be looked at, unless its status is ok.

    `figure` is the objective in its own unit, `bounded` the limited metrics in the order of the settings. `block` is
    the pair of a confirmation to which the run belongs. `start_hours` counts from the beginning of the search.
    `asked` is the configuration that was planned, where the host made something else of it: it rounds, or knows steps.
    """

    config: Config
    host: int
    start_hours: float
    status: Status
    purpose: Purpose
    figure: float | None = None
    bounded: tuple[float, ...] = ()
    block: int = 0
    asked: Config | None = None

    def __post_init__(self) -> None:
        if self.status == "ok" and not (self.figure is not None and 0 < self.figure < math.inf):
            raise ValueError(f"a trial that is ok has a positive figure, not {self.figure}")

    @property
    def failed(self) -> bool:
        """Whether the configuration was to blame that there is no figure."""
        return self.status in ("crashed", "refused")


@dataclass(frozen=True)
class Planned:
    """One run to be made, and the sentence that says why."""

    config: Config
    host: int
    purpose: Purpose
    why: str
    block: int = 0


def searched(trials: Sequence[Trial]) -> list[Trial]:
    """The trials of the search proper: those that no claim may rest on."""
    return [one for one in trials if one.purpose != "confirm"]


def ended_invalid(trials: Sequence[Trial]) -> bool:
    """Whether the newest trials were all invalid, so many that the search must end."""
    newest = [one.status for one in trials[-MOST_INVALID:]]
    return newest == ["invalid"] * MOST_INVALID
