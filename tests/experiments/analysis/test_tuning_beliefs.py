"""What a search believes after some runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.confirming import finalists, needed, reserved
from experiments.analysis.tuning.proposing import spread
from experiments.analysis.tuning.search import owed
from experiments.analysis.tuning.space import Clause, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings, Trial

SPACE = Space(
    (
        *(Parameter(f"size_{n}", "integer", low=1, high=10_000, log=True) for n in range(6)),
        *(Parameter(f"ratio_{n}", "number", low=0.0, high=1.0) for n in range(4)),
        Parameter("mode", "choice", ("a", "b", "c")),
        Parameter("cache", "switch", (False, True)),
    )
)
DEFAULT: dict[str, Value] = {
    **{f"size_{n}": 1 for n in range(6)},
    **{f"ratio_{n}": 0.0 for n in range(4)},
    "mode": "a",
    "cache": False,
}
SETTINGS = Settings(SPACE, DEFAULT, True, budget_runs=100, hosts=4, seed=5)


def tried(speed: Callable[[int], float], *, runs: int = 40, noise: float = 0.03) -> list[Trial]:
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
            figure=1000 * speed(number) * float(np.exp(source.normal(0, noise))),
        )
        for number in range(runs)
    ]


@pytest.mark.parametrize("times", [3.0, 10.0])
def test_a_leap_is_the_configurations_and_no_outlier(times: float) -> None:
    trials = tried(lambda number: times if number == 27 else 1.0)
    beliefs = Beliefs(SETTINGS, trials)
    number = beliefs.numbers[SPACE.key(trials[27].config)]
    assert beliefs.of_known().speed.mean[number] == pytest.approx(np.log(times), abs=0.1)
    assert beliefs.noise_sd < 0.04
    assert SPACE.key(finalists(beliefs)[0]) == SPACE.key(trials[27].config)


@pytest.mark.parametrize("good, failed, is_finalist", [(5, 0, True), (5, 1, False), (10, 1, True), (30, 2, False)])
def test_who_failed_once_beside_many_good_runs_may_still_be_the_answer(
    good: int, failed: int, is_finalist: bool
) -> None:
    trials = tried(lambda number: 2.0 if number == 27 else 1.0)
    best = trials[27]
    trials += [replace(best, host=number % 4, start_hours=2 + number * 0.05) for number in range(good - 1)]
    trials += [replace(best, status="crashed", figure=None, start_hours=4.0)] * failed
    assert (SPACE.key(best.config) in [SPACE.key(one) for one in finalists(Beliefs(SETTINGS, trials))]) is is_finalist


@pytest.mark.parametrize(
    "times, noise, kept",
    [
        (1.0, 0.03, 12),  # five pairs for what may be found yet, and two runs more
        (2.0, 0.03, 18),  # eight pairs show it
        (1.2, 0.1, reserved(SETTINGS)),
    ],
)
def test_the_search_leaves_what_the_confirmation_will_need(times: float, noise: float, kept: int) -> None:
    trials = tried(lambda number: times if number == 27 else 1.0, noise=noise)
    again = tried(lambda number: times, runs=9, noise=noise)[1:]
    trials += [replace(one, config=trials[27].config, purpose="repeat", start_hours=2.0) for one in again]
    assert needed(SETTINGS, Beliefs(SETTINGS, trials)) == kept


def test_a_region_that_was_left_out_teaches_of_its_neighbours_and_is_no_answer() -> None:
    trials = tried(lambda number: 1.0)
    fast = {**DEFAULT, "cache": True, "size_0": 9000}
    near = {**DEFAULT, "cache": True, "size_0": 5000}
    trials += [Trial(config, 0, 3.0, "ok", "explore", figure=1300.0) for config in (fast, near)]
    lost = Trial({**fast, "ratio_0": 1.0}, 1, 3.1, "invalid", "explore")
    assert owed(SETTINGS, [*trials, lost]) == [lost]
    assert [finalists(Beliefs(SETTINGS, trials))[place] for place in (0, 1)] in ([fast, near], [near, fast])

    left = replace(SPACE, forbidden=((Clause("cache", "is", True), Clause("size_0", "above", 7000)),))
    without = replace(SETTINGS, space=left)
    beliefs = Beliefs(without, trials)
    assert finalists(beliefs)[0] == near
    assert fast not in finalists(beliefs)
    known = beliefs.of_known()
    number = beliefs.numbers[left.key(near)]
    assert (known.speed.mean[number] > 0.2, known.survives[number]) == (True, 1.0), "nothing has crashed"
    assert owed(without, [*trials, lost]) == []
