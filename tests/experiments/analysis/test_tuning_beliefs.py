"""What a search believes after some runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.confirming import finalists
from experiments.analysis.tuning.proposing import spread
from experiments.analysis.tuning.space import Parameter, Space, Value
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
    assert beliefs.of_known().speed.mean[number] == pytest.approx(np.log(times), abs=0.1)
    assert beliefs.noise_sd < 0.04
    assert SPACE.key(finalists(beliefs)[0]) == SPACE.key(trials[27].config)
