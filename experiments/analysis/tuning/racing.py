"""Which of the configurations that ran are measured again: the most promising ones, on hosts they have not seen."""

from __future__ import annotations

import numpy as np

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config

STAGES = (1, 3, 9)
"""Runs of a configuration after each stage of the race; only the better third of a stage goes on."""
LIKELY_WITHIN, LIKELY_SURVIVES = 0.2, 0.6


def contenders(beliefs: Beliefs, count: int) -> list[Config]:
    """So many configurations to be measured again, the best first; one may come several times."""
    known = beliefs.of_known()
    hopeful = known.speed.mean + known.speed.sd
    runs = np.array([len(beliefs.measured(number)) for number in range(len(beliefs.configs))])
    able = (known.within >= LIKELY_WITHIN) & (known.survives >= LIKELY_SURVIVES) & (runs > 0)
    able[0] = False
    numbers = np.flatnonzero(able)
    numbers = numbers[np.argsort(-hopeful[numbers], kind="stable")]
    found: list[Config] = []
    for stage, most in enumerate(STAGES[1:]):
        entered = [n for n in numbers if runs[n] >= STAGES[stage]]
        for n in entered[: max(1, len(entered) // 3)]:
            if STAGES[stage] <= runs[n] < most and hopeful[n] > 0:
                found.append(beliefs.configs[n])
    return found[:count]


def freest_host(beliefs: Beliefs, config: Config, hosts: list[int]) -> int:
    """Of these hosts the one on which this configuration ran the least."""
    number = beliefs.numbers.get(beliefs.settings.space.key(config), -1)
    used = [one.host for mine, one in zip(beliefs.number_of, beliefs.trials, strict=True) if mine == number]
    return min(hosts, key=used.count)
