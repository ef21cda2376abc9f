"""Partial dependence from the trials of a search."""

from __future__ import annotations

import math
import random

import pytest

from experiments.analysis.tuning.effects import effects_of
from experiments.analysis.tuning.space import Condition, Parameter, Space, Value
from experiments.analysis.tuning.trials import Settings, Trial

SPACE = Space(
    (
        Parameter("threads", "integer", low=1, high=16),
        Parameter("collector", "choice", choices=("Serial", "G1")),
        Parameter("region", "integer", low=1, high=32, only_when=Condition("collector", ("G1",))),
    )
)
DEFAULT: dict[str, Value] = {"threads": 4, "collector": "Serial", "region": 8}


def trials(count: int, *, sign: int) -> list[Trial]:
    """More threads are better, G1 is 10 % worse, its regions do nothing."""
    chance = random.Random(7)
    found = []
    for number in range(count):
        config = DEFAULT
        if number % 5:
            config = {
                "threads": chance.randint(1, 16),
                "collector": chance.choice(("Serial", "G1")),
                "region": chance.randint(1, 32),
            }
        speed = (float(config["threads"]) / 4) ** 0.2 * (0.9 if config["collector"] == "G1" else 1.0)
        figure = 100 * math.exp(sign * math.log(speed)) * chance.lognormvariate(0, 0.005)
        found.append(Trial(config, 0, number / 10, "ok", "explore" if number % 5 else "control", figure))
    return found


@pytest.mark.parametrize("sign", [1, -1], ids=["higher is better", "lower is better"])
def test_each_parameter_has_its_planted_effect_in_percent_of_the_metric(sign: int) -> None:
    settings = Settings(SPACE, DEFAULT, higher_is_better=sign > 0, budget_runs=100)
    effects = {one.name: one for one in effects_of(settings, trials(80, sign=sign))}
    assert next(iter(effects)) == "threads"
    collector = dict(zip(effects["collector"].values, effects["collector"].change_pct, strict=True))
    assert collector["Serial"] == 0.0
    assert collector["G1"] == pytest.approx(100 * (0.9**sign - 1), abs=2)
    threads = effects["threads"]
    assert threads.change_pct[-1] == pytest.approx(100 * (4 ** (0.2 * sign) - 1), abs=6)
    assert sign * threads.change_pct[0] < -10
    for one in effects.values():
        pairs = zip(one.low_pct, one.change_pct, one.high_pct, strict=True)
        assert all(low <= middle <= high for low, middle, high in pairs)
    region = effects["region"]
    assert region.configs < effects["threads"].configs
    assert all(low < 1.5 and high > -1.5 for low, high in zip(region.low_pct, region.high_pct, strict=True))


def test_with_few_trials_nothing_is_said() -> None:
    settings = Settings(SPACE, DEFAULT, higher_is_better=True, budget_runs=100)
    assert effects_of(settings, trials(8, sign=1)) == []
