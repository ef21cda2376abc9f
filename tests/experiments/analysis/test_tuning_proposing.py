"""Which configurations a search tries: the first ones, and those that it thinks of later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.proposing import candidates, spread
from experiments.analysis.tuning.space import Clause, Config, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings, Trial

NAMES = [f"size_{n}" for n in range(12)]
SPACE = Space(tuple(Parameter(name, "integer", low=1, high=10_000, log=True) for name in NAMES))
DEFAULT: dict[str, Value] = dict.fromkeys(NAMES, 100)
FIRST = Trial(DEFAULT, 0, 0.0, "ok", "control", figure=1000.0)


def kept(configs: Sequence[Config]) -> list[float]:
    """The share of the default's values in each configuration."""
    return [float(np.mean([one[name] == DEFAULT[name] for name in NAMES])) for one in configs]


def test_every_other_of_the_first_configurations_keeps_about_half_of_the_default() -> None:
    shares = kept(spread(SPACE, DEFAULT, 64, 5))
    assert max(shares[::2]) <= 1 / len(NAMES), "100 of 10,000 is met by chance at most once"
    assert np.mean(shares[1::2]) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_others_are_even_over_the_whole_range_of_each_parameter(seed: int) -> None:
    whole = spread(SPACE, DEFAULT, 32, seed)[::2]
    for name in NAMES:
        assert sum(float(one[name]) > 100 for one in whole) == pytest.approx(8, abs=1), name


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_asks_for_more_first_configurations_gets_the_same_ones_first(seed: int) -> None:
    whole = spread(SPACE, DEFAULT, 40, seed)
    for count in (1, 7, 8, 9, 33):
        assert spread(SPACE, DEFAULT, count, seed) == whole[:count]


@pytest.mark.parametrize(
    ("space", "default", "others"),
    [
        (Space((Parameter("cache", "switch", (False, True)),)), {"cache": False}, 1),
        (Space((Parameter("mode", "choice", ("a", "b", "c")), Parameter("cache", "switch", (False, True)))), None, 5),
        (
            Space(
                (Parameter("mode", "choice", ("a", "b", "c")), Parameter("cache", "switch", (False, True))),
                forbidden=((Clause("mode", "is", "c"), Clause("cache", "is", False)),),
            ),
            None,
            4,
        ),
    ],
)
def test_in_a_small_space_every_configuration_that_is_allowed_comes_once(
    space: Space, default: dict[str, Value] | None, others: int
) -> None:
    default = default or {"mode": "a", "cache": False}
    keys = [space.key(one) for one in spread(space, default, 50, 4)]
    assert len(keys) == len(set(keys)) == others
    assert space.key(default) not in keys


def test_the_fastest_ones_are_crossed_with_the_default() -> None:
    fast = dict.fromkeys(NAMES, 7000)
    settings = Settings(SPACE, DEFAULT, True, budget_runs=100, seed=5)
    beliefs = Beliefs(settings, [FIRST, Trial(fast, 0, 0.1, "ok", "explore", figure=2000.0)])
    new = candidates(beliefs, [], [fast], np.random.default_rng(3))
    between = [one for one in new if set(one.values()) == {100, 7000}]
    assert len(between) >= 100
    assert min(kept(between)) < 0.3
    assert max(kept(between)) > 0.7
