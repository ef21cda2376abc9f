"""What the surface of a search believes of each parameter alone: partial dependence.

The change when one parameter has another value than its default's, on the mean over the configurations that were
measured (Friedman, Greedy function approximation, 2001, section 8.2), with the process's own uncertainty. A model's
opinion from selected trials, and no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings, Trial

FEWEST_MEASURED = 12
"""Configurations with a figure, below which nothing is drawn: the surface would be its prior."""
MOST_CONFIGS, MOST_VALUES = 40, 9
Z95 = 1.96


@dataclass(frozen=True)
class Effect:
    """One parameter: changes of the objective in %, against its default's value, one for each of `values`.

    `low_pct` and `high_pct` hold 95 % of what the model believes; `configs` is how many configurations it is the mean
    of.
    """

    name: str
    values: tuple[Value, ...]
    change_pct: tuple[float, ...]
    low_pct: tuple[float, ...]
    high_pct: tuple[float, ...]
    configs: int

    @property
    def spread_pct(self) -> float:
        """From the lowest to the highest change: what the parameters are ranked by."""
        return max(self.change_pct) - min(self.change_pct)


def effects_of(settings: Settings, trials: Sequence[Trial]) -> list[Effect]:
    """Every parameter that some measured configuration uses, the largest spread first; [] with too few trials."""
    beliefs = Beliefs(settings, trials)
    measured = [config for number, config in enumerate(beliefs.configs) if beliefs.measured(number)]
    if len(measured) < FEWEST_MEASURED or not beliefs.measured(0):
        return []
    step = max(1, math.ceil(len(measured) / MOST_CONFIGS))
    found = (_effect(beliefs, one, measured[::step]) for one in settings.space.parameters)
    return sorted((one for one in found if one is not None), key=lambda one: -one.spread_pct)


def _effect(beliefs: Beliefs, one: Parameter, configs: Sequence[Config]) -> Effect | None:
    settings = beliefs.settings
    values = values_of(one)
    wanted = [settings.default[one.name], *values]
    sets = [found for config in configs if (found := _with_each(settings.space, one, config, wanted)) is not None]
    if not sets or len(values) < 2:
        return None
    rows = [settings.default, *(config for found in sets for config in found)]
    belief = beliefs.of(settings.space.positions(rows), np.array([0, *(-1 - np.arange(len(rows) - 1))])).speed
    sign = 1 if settings.higher_is_better else -1
    changes = []
    for place in range(1, len(wanted)):
        weights = np.zeros(len(rows))
        for number in range(len(sets)):
            weights[1 + number * len(wanted) + place] += 1 / len(sets)
            weights[1 + number * len(wanted)] -= 1 / len(sets)
        if wanted[place] == wanted[0]:
            weights[:] = 0.0
        mean, sd = float(weights @ belief.mean), math.sqrt(max(float(weights @ belief.covariance @ weights), 0.0))
        changes.append(sorted(100 * math.expm1(sign * (mean + by * sd)) for by in (-Z95, 0.0, Z95)))
    low, middle, high = (tuple(column) for column in zip(*changes, strict=True))
    return Effect(one.name, values, middle, low, high, len(sets))


def values_of(one: Parameter) -> tuple[Value, ...]:
    """The values at which an effect is looked at, in order: all choices, or some over the range."""
    if one.choices:
        return tuple(one.choices)
    return tuple(dict.fromkeys(one.at(float(u)) for u in np.linspace(0, 1, MOST_VALUES)))


def _with_each(space: Space, one: Parameter, config: Config, values: Sequence[Value]) -> list[Config] | None:
    """The configuration with each value; None where it does not count there, or a combination is forbidden."""
    column = space.parameters.index(one)
    found: list[Config] = [{**config, one.name: value} for value in values]
    if not all(space.active(each)[column] for each in found) or any(space.is_forbidden(each) for each in found):
        return None
    return found
