"""Confirmation: finalists against the default in fresh pairs of runs, and what may be claimed of the winner.

Stopping by the width of the interval: docs/verdicts.md; the course: docs/tuning.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.analysis.distributions import normal_quantile, normal_share, normal_shares, student_quantile
from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.space import Config
from experiments.analysis.tuning.trials import Planned, Settings, Trial
from experiments.analysis.verdict import Verdict, judge

FINALISTS = 3
FEWEST_PAIRS, WANTED_HALF = 8, 0.025
"""Pairs before the width is looked at, and half the length of the interval, in logs, that is narrow enough."""
FEWEST_RESERVED, RESERVED_RATIO, MOST_RATIO = 6, 0.24, 0.32
"""Runs that the search leaves: so many, and this part of the budget; pairs of one finalist take at most the last."""
GAIN_RATIO, SPARE = 0.25, 2
"""Half the interval of a large gain may be this part of it; runs that may turn out invalid."""
SURE_WITHIN, SURE_SURVIVES, RUNS_OF_A_FAILURE = 0.8, 0.6, 10
"""A finalist may have failed once, if so many runs of it did not."""
LIKELY, UNLIKELY = 0.8, 0.2
BETTER = ("better", "better_size_uncertain")
PAIR_HOURS = 6.0
"""Runs that began further apart are no pair: the drift between them is that of two days, not of one moment."""
POWER, ROUNDS, MOST_PAIRS = 0.8, 4, 1_000_000
"""The chance that a forecast aims at; rounds until its number is consistent with itself; more pairs nobody makes."""


@dataclass(frozen=True)
class Claim:
    """A configuration that was confirmed: its gain over the default as a ratio, 0.1 = 10 % faster, with interval."""

    config: Config
    gain: float
    low: float
    high: float
    verdict: Verdict
    finalists: int


@dataclass(frozen=True)
class Finalist:
    """One finalist and its pairs: a figure for the default and for the finalist each, None while one is missing.

    `failures` are all of its runs that crashed or were refused, those of the search, too.
    """

    config: Config
    pairs: dict[int, tuple[float | None, float | None]]
    failures: int

    @property
    def logs(self) -> list[float]:
        """The log of the ratio of the finalist's figure to the default's, one for each complete pair."""
        return [math.log(mine / base) for base, mine in self.pairs.values() if base is not None and mine is not None]


def reserved(settings: Settings) -> int:
    """Runs that the search leaves for the confirmation."""
    return FEWEST_RESERVED + math.ceil(RESERVED_RATIO * settings.budget_runs)


def few_pairs(settings: Settings) -> int:
    """Pairs of a finalist before the width of their interval is looked at: one on each host, as far as runs allow."""
    hosts = settings.hosts if settings.confirm_host is None else 1
    return max(MIN_FOR_VERDICT, min(max(FEWEST_PAIRS, hosts), reserved(settings) // 2))


def needed(settings: Settings, beliefs: Beliefs) -> int:
    """Runs that the confirmation will probably take, at most those that are reserved; the search may have the others.

    A gain that is large beside the noise takes the fewest pairs. While nothing is likely to gain the margin, what a
    verdict takes at least is kept for what may be found yet.
    """
    likely = (one for one in finalists(beliefs) if chance_of_margin(beliefs, one) >= LIKELY)
    if (first := next(likely, None)) is None:
        return min(reserved(settings), 2 * MIN_FOR_VERDICT + SPARE)
    gain = float(beliefs.of_known().speed.mean[beliefs.numbers[settings.space.key(first)]])
    half = max(WANTED_HALF, GAIN_RATIO * gain)
    pairs = max(few_pairs(settings), math.ceil((2 * math.sqrt(2) * beliefs.noise_sd / half) ** 2))
    return min(reserved(settings), 2 * pairs + SPARE)


def pairs_wanted(settings: Settings, trials: Sequence[Trial], finalist: Finalist, tried: int) -> int:
    """How many pairs there shall be: so many that the interval is narrow enough, judged by its width alone.

    What the pairs say of the gain does not enter, so that their interval keeps its meaning; but after more budget it
    does once, at the look that its level pays for: a finalist that could not be told then gets as many as were said to
    do, where the budget has them, and no other one gets more than the fewest.
    """
    few, before = few_pairs(settings), standing(settings, trials[: settings.looked_at], finalist.config)
    if settings.looks > 1 and len(before.logs) >= MIN_FOR_VERDICT:
        telling = pairs_that_tell(replace(settings, looks=settings.looks - 1), before, tried)
        left = (settings.budget_runs - settings.looked_at) // 2
        if telling is None or telling - len(before.logs) > left:
            telling = len(before.logs)
        return max(few, telling)
    logs = finalist.logs
    if len(logs) < few:
        return few
    quantile = student_quantile(len(logs) - 1, 1 - settings.level(tried) / 2)
    half = quantile * float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    most = max(few, int(MOST_RATIO * settings.budget_runs / 2))
    return len(logs) if half <= WANTED_HALF else min(len(logs) + 2, most)


def pairs_that_tell(settings: Settings, finalist: Finalist, tried: int) -> int | None:
    """How many pairs in all would confirm this finalist at the next look, if it gains what it seems to.

    None when its pairs tell already, or when it seems to lose. The chance to confirm it is then `POWER`: the interval
    lies above 0 when the estimate is larger than half of it, and the estimate itself moves by chance (sample size of a
    paired t test: Cohen, Statistical Power Analysis, 1988, ch. 2).
    """
    logs = finalist.logs
    if len(logs) < MIN_FOR_VERDICT:
        return None
    sign = 1 if settings.higher_is_better else -1
    mean, sd = sign * float(np.mean(logs)), float(np.std(logs, ddof=1))
    if mean <= 0 or verdict_on(settings, finalist, tried).outcome != "inconclusive":
        return None
    level, count = replace(settings, looks=settings.looks + 1).level(tried), len(logs)
    for _ in range(ROUNDS):  # the quantile depends a little on the number
        quantile = student_quantile(count - 1, 1 - level / 2) + normal_quantile(POWER)
        count = max(MIN_FOR_VERDICT, math.ceil(min((quantile * sd / mean) ** 2, MOST_PAIRS)))
    return count


def finalists(beliefs: Beliefs) -> list[Config]:
    """The configurations that ran and may be confirmed, the best first; none when nothing looks better."""
    known = beliefs.of_known()
    worth = (known.speed.mean - 0.5 * known.speed.sd) * known.survives * known.within
    able = (known.within >= SURE_WITHIN) & (known.survives >= SURE_SURVIVES)
    able[0] = False
    for number in np.flatnonzero(able):
        measured = len(beliefs.measured(int(number)))
        able[number] = measured > 0 and beliefs.failures(int(number)) <= min(1, measured // RUNS_OF_A_FAILURE)
    numbers = [n for n in np.argsort(-worth, kind="stable") if able[n] and worth[n] > 0]
    return [beliefs.configs[n] for n in numbers]


def beyond_limits(beliefs: Beliefs) -> int:
    """How many configurations that ran are likely to beat the default by the margin and unlikely to keep the limits."""
    known, margin = beliefs.of_known(), math.log1p(beliefs.settings.margin_ratio)
    chances = normal_shares((known.speed.mean - margin) / known.speed.sd)
    found = np.flatnonzero((known.within < UNLIKELY) & (chances > LIKELY))
    return sum(bool(beliefs.measured(int(number))) for number in found)


def chance_of_margin(beliefs: Beliefs, config: Config) -> float:
    """The probability that a configuration that ran beats the default by the margin."""
    known, number = beliefs.of_known().speed, beliefs.numbers[beliefs.settings.space.key(config)]
    margin = math.log1p(beliefs.settings.margin_ratio)
    return normal_share(float((known.mean[number] - margin) / known.sd[number]))


def standing(settings: Settings, trials: Sequence[Trial], config: Config) -> Finalist:
    """What the confirmation has measured of one finalist."""
    key = settings.space.key(config)
    mine = [one for one in trials if one.purpose == "confirm" and settings.space.key(one.config) == key]
    defaults = [
        one for one in trials if one.purpose == "confirm" and settings.space.key(one.config) == settings.default_key
    ]
    figures = {one.block: one for one in mine if one.status == "ok"}
    base = {one.block: one for one in defaults if one.status == "ok"}
    blocks = [block for block in sorted({one.block for one in mine}) if _are_near(base.get(block), figures.get(block))]
    return Finalist(
        config,
        {block: (_figure(base.get(block)), _figure(figures.get(block))) for block in blocks},
        sum(one.failed for one in trials if settings.space.key(one.config) == key),
    )


def _are_near(one: Trial | None, other: Trial | None) -> bool:
    return one is None or other is None or abs(one.start_hours - other.start_hours) <= PAIR_HOURS


def _figure(one: Trial | None) -> float | None:
    return None if one is None else one.figure


def plan_pair(settings: Settings, config: Config, block: int, host: int) -> tuple[Planned, Planned]:
    """A pair on one host, the default first in every other block."""
    why = f"pair {block + 1} of the confirmation"
    pair = (
        Planned(config, host, "confirm", why, block),
        Planned(settings.default, host, "confirm", why, block),
    )
    return pair if block % 2 else (pair[1], pair[0])


def verdict_on(settings: Settings, finalist: Finalist, tried: int) -> Verdict:
    """The project's verdict on the complete pairs, at the level of the family of finalists tried so far."""
    a = [pair[0] for pair in finalist.pairs.values()]
    b = [pair[1] for pair in finalist.pairs.values()]
    return judge(
        a,
        b,
        higher_is_better=settings.higher_is_better,
        margin_ratio=settings.margin_ratio,
        alpha=settings.level(tried),
        design="blocked",
    )


def claim_of(settings: Settings, finalist: Finalist, verdict: Verdict, tried: int) -> Claim | None:
    """What may be claimed; None when the pairs do not show that it is better.

    The verdict speaks of geometric means. Who deploys a configuration gets the arithmetic mean, slow hosts and slow
    modes included: estimate and interval move to the ratio of the sums.
    """
    if verdict.outcome not in BETTER or verdict.estimate_pct is None or verdict.deciding_pct is None:
        return None
    pairs = [(a, b) for a, b in finalist.pairs.values() if a is not None and b is not None]
    of_sums = math.fsum(b for _, b in pairs) / math.fsum(a for a, _ in pairs)
    moved = of_sums / (1 + verdict.estimate_pct / 100)
    ends = [_gain(settings, (1 + pct / 100) * moved) for pct in verdict.deciding_pct]
    if min(ends) <= 0:
        return None
    return Claim(finalist.config, _gain(settings, of_sums), min(ends), max(ends), verdict, tried)


def _gain(settings: Settings, ratio: float) -> float:
    """The gain in speed, as a ratio, from the ratio of the figures."""
    return ratio - 1 if settings.higher_is_better else 1 / ratio - 1
