"""The race at the end of a search: the most promising configurations are measured again, on other hosts.

Source: Birattari and others, A Racing Algorithm for Configuring Metaheuristics, 2002; the course: docs/tuning.md.
"""

from __future__ import annotations

import numpy as np

from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config

STAGES = (1, 3, 9)
"""Runs of a configuration after each stage of the race; only the better third of a stage goes on."""
LIKELY_WITHIN, LIKELY_SURVIVES, BEHIND_SDS = 0.3, 0.6, 2.0


def contenders(beliefs: Beliefs, count: int) -> list[Config]:
    """So many configurations to be measured again, the best first; each at most once."""
    known = beliefs.of_known()
    mean, sd = known.speed.mean, known.speed.sd
    runs = np.array([len(beliefs.measured(number)) for number in range(len(beliefs.configs))])
    able = (known.within >= LIKELY_WITHIN) & (known.survives >= LIKELY_SURVIVES) & (runs > 0)
    able[0] = False
    if not able.any():
        return []
    leader = int(np.argmax(np.where(able & (known.within > 0.5), mean - sd, -np.inf)))
    able &= mean + BEHIND_SDS * sd > max(0.0, float(mean[leader] - sd[leader]))
    numbers = np.flatnonzero(able)
    numbers = numbers[np.argsort(-(mean * known.within)[numbers], kind="stable")]
    found: list[Config] = []
    for stage, most in enumerate(STAGES[1:]):
        entered = [n for n in numbers if runs[n] >= STAGES[stage]]
        found += [beliefs.configs[n] for n in entered[: max(2, len(entered) // 3)] if STAGES[stage] <= runs[n] < most]
    return found[:count]


def freest_host(beliefs: Beliefs, config: Config, hosts: list[int]) -> int:
    """Of these hosts the one on which this configuration ran the least."""
    number = beliefs.numbers.get(beliefs.settings.space.key(config), -1)
    used = [one.host for mine, one in zip(beliefs.number_of, beliefs.trials, strict=True) if mine == number]
    return min(hosts, key=used.count)
