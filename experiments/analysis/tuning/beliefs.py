"""What the trials of a search say of configurations: how fast, within the limits or not, and whether they crash.

The model is that of surface.py; docs/tuning.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.distributions import normal_shares
from experiments.analysis.tuning.space import Config, Key
from experiments.analysis.tuning.surface import Belief, Observations, Surface, weights_of
from experiments.analysis.tuning.trials import Settings, Trial

Floats = NDArray[np.float64]

FITTED_AFTER_RATIO = 1.25
"""The weights are fitted anew whenever there are so many times the runs of the last fit."""
SLOW_LOG = 0.3
"""Below the default by more than this, how much slower a configuration is matters less and less."""
CRASH_PRIOR_RUNS = 10


@dataclass(frozen=True, eq=False)
class Prospect:
    """What is believed of some configurations, the default first; one entry for each.

    `speed` is the log of the speed relative to the default, `within` and `survives` are probabilities: that every
    limit holds, and that a run does not crash. What ran and is forbidden by now counts as what never survives: its
    figures teach, and it is neither tried nor recommended.
    """

    speed: Belief
    within: Floats
    survives: Floats


class Beliefs:
    """The trials, understood. Every configuration that ran has a number in the order of its first run, default 0."""

    def __init__(self, settings: Settings, trials: Sequence[Trial]) -> None:
        self.settings = settings
        self.trials = [one for one in trials if one.status != "invalid"]
        self.configs: list[Config] = [settings.default]
        self.numbers: dict[Key, int] = {settings.default_key: 0}
        for one in self.trials:
            key = settings.space.key(one.config)
            if key not in self.numbers:
                self.numbers[key] = len(self.configs)
                self.configs.append(one.config)
        self.number_of = [self.numbers[settings.space.key(one.config)] for one in self.trials]
        self.positions = settings.space.positions(self.configs)
        self.unordered = np.array([not one.is_ordered for one in settings.space.parameters])
        self._forbidden = np.array([settings.space.is_forbidden(one) for one in self.configs])

    @cached_property
    def _speed(self) -> Surface:
        logs = [_log_speed(self.settings, one) for one in self.trials]
        at = [place for place, value in enumerate(logs) if value is not None]
        until = at[fitted_at(len(at)) - 1] + 1
        # Those of the last fit as they were at that time: a control that ran since then asks for no other fit.
        fitted = compressed(logs[:until], self.number_of[:until])
        return self._surface(compressed(logs, self.number_of), fitted=fitted, has_tails=True)

    @cached_property
    def _limited(self) -> list[Surface]:
        # Without tails: a limit shall hold in slow modes, too, so that none of its runs may be made light of.
        return [
            self._surface([math.log(one.bounded[place]) if one.status == "ok" else None for one in self.trials])
            for place in range(len(self.settings.limits))
        ]

    @cached_property
    def _crash(self) -> Surface | None:
        crashed = [float(one.failed) for one in self.trials]
        return self._surface(crashed, placed=False) if any(crashed) else None

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the log of one run's figure, as far as the surface does not explain it."""
        return math.sqrt(self._speed.weights.noise)

    def measured(self, number: int) -> list[Trial]:
        """The runs of a configuration that have a figure."""
        pairs = zip(self.number_of, self.trials, strict=True)
        return [one for mine, one in pairs if mine == number and one.status == "ok"]

    def failures(self, number: int) -> int:
        """How many runs of a configuration crashed or were refused."""
        return sum(mine == number and one.failed for mine, one in zip(self.number_of, self.trials, strict=True))

    def of_known(self) -> Prospect:
        """Of every configuration that ran, in the order of their numbers."""
        return self.of(self.positions, np.arange(len(self.configs)))

    def of(self, positions: Floats, numbers: NDArray[np.int64]) -> Prospect:
        """Of configurations at these positions, one row each, the default first; numbers below 0 are new ones."""
        survives = np.ones(len(positions))
        if self._crash is not None:
            survives = 1 - np.clip(self._crash.absolute(positions, numbers, self.settings.hosts)[0], 0.0, 1.0)
        survives[(numbers >= 0) & self._forbidden[np.maximum(numbers, 0)]] = 0.0
        return Prospect(self._speed.believe(positions, numbers), self.within(positions, numbers), survives)

    def within(self, positions: Floats, numbers: NDArray[np.int64]) -> Floats:
        """The probability that every limit holds, one for each row of `positions`.

        `positions` are as of Space.positions, fractions of the ranges; `numbers` count the configurations, as in `of`.
        """
        within = np.ones(len(positions))
        for limit, surface in zip(self.settings.limits, self._limited, strict=True):
            mean, sd = surface.absolute(positions, numbers, self.settings.hosts)
            within = within * normal_shares((math.log(limit.at_most) - mean) / sd)
        return within

    def within_of(self, config: Config) -> float:
        """The probability that a configuration that ran keeps every limit."""
        number = self.numbers[self.settings.space.key(config)]
        return float(self.within(self.positions[[number]], np.array([number]))[0])

    def _surface(
        self,
        values: Sequence[float | None],
        *,
        fitted: Sequence[float | None] | None = None,
        placed: bool = True,
        has_tails: bool = False,
    ) -> Surface:
        """Of one value for each trial; `fitted` are those of the first trials that the weights are fitted to."""
        seen = self._observations(values, placed, has_tails)
        first = seen if fitted is None else self._observations(fitted, placed, has_tails)
        return Surface(seen, weights_of(first.first(fitted_at(len(seen)))))

    def _observations(self, values: Sequence[float | None], placed: bool, has_tails: bool) -> Observations:
        at = [place for place, value in enumerate(values) if value is not None]
        numbers = np.array([self.number_of[place] for place in at], dtype=np.int64)
        return Observations(
            positions=self.positions[numbers],
            unordered=self.unordered,
            config=numbers,
            host=np.array([self.trials[place].host if placed else 0 for place in at], dtype=np.int64),
            hours=np.array([self.trials[place].start_hours if placed else 0.0 for place in at]),
            y=np.array([values[place] for place in at], dtype=float),
            has_tails=has_tails,
        )


def fitted_at(count: int) -> int:
    """The number of runs at the last fit of the weights, when there are `count` now."""
    at = 4
    while (following := max(at + 2, math.ceil(at * FITTED_AFTER_RATIO))) <= count:
        at = following
    return min(at, count)


def _log_speed(settings: Settings, trial: Trial) -> float | None:
    """The log of the figure, larger when better."""
    if trial.status != "ok" or trial.figure is None:
        return None
    return math.log(trial.figure) * (1 if settings.higher_is_better else -1)


def compressed(values: Sequence[float | None], numbers: Sequence[int]) -> list[float | None]:
    """Logs of speeds, with those far below the default drawn together: how bad the bad ones are bends no surface."""
    default = [value for value, number in zip(values, numbers, strict=True) if number == 0 and value is not None]
    level = float(np.mean(default)) - SLOW_LOG if default else -math.inf
    return [
        value if value is None or value >= level else level - SLOW_LOG * math.log1p((level - value) / SLOW_LOG)
        for value in values
    ]
