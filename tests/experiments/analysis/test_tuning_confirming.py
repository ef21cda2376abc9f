"""Pairs of a finalist: how many there shall be, which runs are pairs, and what each further look costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from experiments.analysis.tuning.confirming import (
    claim_of,
    few_pairs,
    pairs_that_tell,
    pairs_wanted,
    standing,
    verdict_on,
)
from experiments.analysis.tuning.space import Parameter, Space
from experiments.analysis.tuning.trials import Settings, Trial

SETTINGS = Settings(Space((Parameter("workers", "integer", low=1, high=64),)), {"workers": 8}, True, budget_runs=60)
MINE = {"workers": 1}


def pairs(count: int, *, noise: float, gain: float, seed: int = 3) -> list[Trial]:
    source = np.random.default_rng(seed)
    found: list[Trial] = []
    for block in range(count):
        for config, mean in ((SETTINGS.default, 0.0), (MINE, gain)):
            figure = 1000 * math.exp(mean + source.normal(0, noise))
            found.append(Trial(config, 0, len(found) / 10, "ok", "confirm", figure, block=block))
    return found


def complete(settings: Settings, *, noise: float, gain: float, after: Sequence[Trial] = ()) -> list[Trial]:
    """All the pairs that the finalist shall have; those of `after` are the first ones."""
    trials = list(after)
    while len(trials) // 2 < pairs_wanted(settings, trials, standing(settings, trials, MINE), 1):
        trials = pairs(len(trials) // 2 + 1, noise=noise, gain=gain)
    return trials


@pytest.mark.parametrize(("budget", "noise", "gain"), [(40, 0.04, 0.03), (60, 0.04, 0.03), (100, 0.06, 0.04)])
def test_more_budget_is_spent_on_as_many_pairs_as_were_said_to_do(budget: int, noise: float, gain: float) -> None:
    first = replace(SETTINGS, budget_runs=budget)
    trials = complete(first, noise=noise, gain=gain)
    finalist = standing(first, trials, MINE)
    assert claim_of(first, finalist, verdict_on(first, finalist, 1), 1) is None
    said = pairs_that_tell(first, finalist, 1)
    assert said is not None
    more = 2 * (said - len(finalist.logs))
    again = replace(first, budget_runs=budget + more, looks=2, looked_at=len(trials))
    assert len(complete(again, noise=noise, gain=gain, after=trials)) == len(trials) + more


def test_what_was_said_to_do_confirms_a_gain_that_is_as_it_seemed_in_four_of_five_cases() -> None:
    noise, gain, confirmed = 0.04, 0.03, 0
    alike = pairs(8, noise=noise, gain=gain)
    scale = noise * math.sqrt(2) / float(np.std(standing(SETTINGS, alike, MINE).logs, ddof=1))
    shift = gain - scale * float(np.mean(standing(SETTINGS, alike, MINE).logs))
    seen = [
        replace(one, figure=1000 * math.exp(0.0 if one.config == SETTINGS.default else shift + scale * log))
        for one, log in zip(alike, np.repeat(standing(SETTINGS, alike, MINE).logs, 2), strict=True)
    ]
    later = replace(SETTINGS, looks=2, looked_at=len(seen))
    said = pairs_that_tell(SETTINGS, standing(SETTINGS, seen, MINE), 1)
    assert said is not None
    for seed in range(200):
        finalist = standing(later, pairs(said, noise=noise, gain=gain, seed=seed), MINE)
        confirmed += claim_of(later, finalist, verdict_on(later, finalist, 1), 1) is not None
    assert 0.7 < confirmed / 200 < 0.9


def test_more_budget_goes_to_a_finalist_that_it_suffices_for_and_to_none_that_was_told() -> None:
    unclear, told = pairs(8, noise=0.04, gain=0.03), pairs(30, noise=0.002, gain=0.004)
    for trials, more, goes_on in ((unclear, 1000, True), (unclear, 4, False), (told, 1000, False)):
        later = replace(SETTINGS, budget_runs=len(trials) + more, looks=2, looked_at=len(trials))
        wanted = pairs_wanted(later, trials, standing(later, trials, MINE), 1)
        assert (wanted > len(trials) // 2) == goes_on


def test_pairs_that_were_under_way_when_budget_came_are_completed_as_they_would_have_been() -> None:
    trials = pairs(6, noise=0.04, gain=0.03)
    for more in (4, 40):
        later = replace(SETTINGS, budget_runs=60 + more, looks=2, looked_at=len(trials))
        assert pairs_wanted(later, trials, standing(later, trials, MINE), 1) >= few_pairs(SETTINGS) == 8


def test_nobody_is_told_how_many_runs_would_confirm_a_loss() -> None:
    assert pairs_that_tell(SETTINGS, standing(SETTINGS, pairs(8, noise=0.01, gain=-0.05), MINE), 1) is None


def test_runs_that_began_days_apart_are_no_pair() -> None:
    trials = pairs(3, noise=0.01, gain=0.1)
    paused = [replace(one, start_hours=one.start_hours + 72) if place else one for place, one in enumerate(trials)]
    assert [*standing(SETTINGS, trials, MINE).pairs] == [0, 1, 2]
    assert [*standing(SETTINGS, paused, MINE).pairs] == [1, 2]


def test_all_looks_together_cost_at_most_twice_the_first() -> None:
    assert sum(replace(SETTINGS, looks=look).level(1) for look in range(1, 40)) <= 2 * SETTINGS.level(1)
