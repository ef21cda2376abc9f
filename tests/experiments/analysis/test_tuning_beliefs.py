"""What a search believes after some runs, and where it looks next."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.candidates import candidates, spread
from experiments.analysis.tuning.confirming import finalists
from experiments.analysis.tuning.search import needed_chance, searching
from experiments.analysis.tuning.space import Clause, Config, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings, Trial

SPACE = Space(
    (
        *(Parameter(f"size_{n}", "integer", low=1, high=10_000, log=True) for n in range(6)),
        *(Parameter(f"ratio_{n}", "number", low=0.0, high=1.0) for n in range(4)),
        Parameter("mode", "choice", ("a", "b", "c")),
        Parameter("cache", "switch", (False, True)),
    ),
    forbidden=((Clause("mode", "is", "c"), Clause("cache", "is", True)),),
)
DEFAULT: dict[str, Value] = {
    **{f"size_{n}": 1 for n in range(6)},
    **{f"ratio_{n}": 0.0 for n in range(4)},
    "mode": "a",
    "cache": False,
}
SETTINGS = Settings(SPACE, DEFAULT, True, budget_runs=100, hosts=4, seed=5)


def tried(speed: Callable[[int], float], *, runs: int = 40) -> list[Trial]:
    """The default every sixth run, else new configurations; `speed` says how fast the nth run is."""
    configs = iter(spread(SPACE, DEFAULT, runs, 5))
    source = np.random.default_rng(1)
    return [
        Trial(
            DEFAULT if number % 6 == 0 else next(configs),
            number % 4,
            number * 0.05,
            "ok",
            "control" if number % 6 == 0 else "explore",
            figure=1000 * speed(number) * float(np.exp(source.normal(0, 0.03))),
        )
        for number in range(runs)
    ]


@pytest.mark.parametrize("times", [3.0, 10.0])
def test_a_leap_is_the_configurations_and_no_outlier(times: float) -> None:
    trials = tried(lambda number: times if number == 27 else 1.0)
    beliefs = Beliefs(SETTINGS, trials)
    number = beliefs.numbers[SPACE.key(trials[27].config)]
    assert beliefs.of_known().speed.mean[number] > 0.8 * np.log(times)
    assert SPACE.key(finalists(beliefs)[0]) == SPACE.key(trials[27].config)


def kept(config: Config) -> int:
    """How many parameters have the default's value."""
    return sum(config[name] == value for name, value in DEFAULT.items())


def test_the_first_configurations_are_spread_over_the_space_and_around_the_default() -> None:
    found = spread(SPACE, DEFAULT, 24, 5)
    far, near = found[::2], found[1::2]
    assert np.median([kept(one) for one in far]) <= 2
    assert np.median([kept(one) for one in near]) >= 6
    assert {len(SPACE.parameters) - kept(one) for one in near} >= {1, 2}
    assert spread(SPACE, DEFAULT, 7, 5) == found[:7]
    assert not any(SPACE.is_forbidden(one) or SPACE.key(one) == SPACE.key(DEFAULT) for one in found)


def test_candidates_are_new_allowed_and_lie_near_the_default_and_near_and_between_the_good_ones() -> None:
    good = spread(SPACE, DEFAULT, 6, 5)[::2]
    known = {SPACE.key(one) for one in [DEFAULT, *good]}
    found = candidates(SPACE, DEFAULT, good, known, np.random.default_rng(1))
    for one in found:
        SPACE.check(one)
    keys = [SPACE.key(one) for one in found]
    assert len(set(keys)) == len(keys)
    assert not known & set(keys)
    assert sum(kept(one) >= len(DEFAULT) - 3 for one in found) > 10
    for each in good:
        assert sum(sum(one[name] == each[name] for name in each) >= len(each) - 3 for one in found) > 5
    first, second = DEFAULT, good[0]
    assert any(
        all(one[name] in (first[name], second[name]) for name in one)
        and min(sum(one[name] != parent[name] for name in one) for parent in (first, second)) > 3
        for one in found
    )


def test_the_fewer_runs_are_left_the_likelier_a_gain_must_be_to_go_on() -> None:
    chances = [needed_chance(SETTINGS, runs) for runs in range(50, searching(SETTINGS) + 1)]
    assert chances == sorted(chances)
    assert chances[0] < chances[-1] == pytest.approx(0.5)
