"""The pairs of a finalist: which runs they still need, and when it is out before they are complete.

The course: docs/tuning.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.analysis.tuning import confirming
from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.confirming import Finalist
from experiments.analysis.tuning.trials import ATTEMPTS, Planned, Settings, Trial

LEAST_WITHIN = 0.6
"""Probability that the limits hold, below which a finalist is out as soon as it has its first pairs."""
FIRST_PAIRS, MORE_PAIRS, UNSURE_PAIRS = 3, 5, 2
"""Pairs at once: the first ones, the next ones, and those where a limit or a crash may end it soon. What is not made
of a finalist that is out is left for another one."""
LEAST_HELD = 0.25
"""In so many of its pairs, of five or more, a limit must hold, however likely it is by what the search has seen."""
DOUBTLESS_WITHIN = 0.9
"""From this probability on that the limits hold, and without a failure, a finalist is not in doubt."""
SHARED_PAIRS, SHARED_HOURS = 3, 2.0
"""So many runs of the default serve a second finalist, and none that began longer before. The drift since then is in
the pairs that they belong to, and in all of them alike: were all pairs such, the interval would be too short."""


def is_out(settings: Settings, trials: Sequence[Trial], finalist: Finalist) -> bool:
    """Whether a finalist is out, complete or not: it failed twice, loses after five pairs, or breaks a limit.

    A limit is judged by the trials up to the finalist's own last one: what follows are runs of others.
    """
    if finalist.failures > 1:
        return True
    pairs = [(base, mine) for base, mine in finalist.pairs.values() if base is not None and mine is not None]
    if len(pairs) < FIRST_PAIRS:
        return False
    own = [place for place, one in enumerate(trials) if _is_pair_of(settings, one, finalist)]
    if _within(settings, trials[: own[-1] + 1], finalist) < LEAST_WITHIN:
        return True
    if len(pairs) < MIN_FOR_VERDICT:
        return False
    sign = 1 if settings.higher_is_better else -1
    gain = math.fsum(sign * math.log(mine / base) for base, mine in pairs)
    return gain <= 0 or _breaks_limit(settings, [trials[place] for place in own])


def _is_pair_of(settings: Settings, trial: Trial, finalist: Finalist) -> bool:
    return trial.purpose == "confirm" and settings.space.key(trial.config) == settings.space.key(finalist.config)


def _breaks_limit(settings: Settings, own: Sequence[Trial]) -> bool:
    """Whether a limit held in fewer than `LEAST_HELD` of these runs.

    Not their mean: while not every host had its turn, that is a matter of the hosts, which only the model knows.
    """
    seen = [one.bounded for one in own if one.status == "ok"]
    held = [sum(values[place] <= limit.at_most for values in seen) for place, limit in enumerate(settings.limits)]
    return any(count < LEAST_HELD * len(seen) for count in held)


def _within(settings: Settings, trials: Sequence[Trial], finalist: Finalist) -> float:
    """The probability that a finalist keeps every limit, from all of these trials, those of the search, too."""
    return Beliefs(settings, trials).within_of(finalist.config)


def next_runs(
    settings: Settings,
    trials: Sequence[Trial],
    beliefs: Beliefs,
    finalist: Finalist,
    tried: int,
    out: Sequence[Finalist],
) -> tuple[Planned, ...]:
    """The next runs of a finalist's pairs, none when they are complete, or cannot be completed.

    `beliefs` are those of all trials. It is the finalist number `tried`, from 1, and of those before it `out` are out.
    """
    left = max(settings.budget_runs - len(trials), 0)  # a budget may be lowered meanwhile
    if planned := _again(settings, trials, finalist):
        return tuple(planned[:left])
    complete = sum(None not in pair for pair in finalist.pairs.values())
    wanted = confirming.pairs_wanted(settings, trials, finalist, tried)
    shared = _beside_default(settings, trials, finalist, out)[:left]
    possible = len(shared) + (left - len(shared)) // 2
    if complete >= wanted or (not complete and possible < MIN_FOR_VERDICT):
        return ()
    doubtless = not finalist.failures and _within(settings, trials, finalist) >= DOUBTLESS_WITHIN
    at_once = FIRST_PAIRS if not complete else MORE_PAIRS if doubtless else UNSURE_PAIRS
    most = min(wanted - complete, len(settings.confirming), at_once)
    return tuple(shared[:most]) or _new_pairs(settings, trials, beliefs, finalist, min(most, left // 2))


def _again(settings: Settings, trials: Sequence[Trial], finalist: Finalist) -> list[Planned]:
    """What the finalist's pairs that were begun still lack."""
    planned = []
    for block, (base, mine) in finalist.pairs.items():
        of_block = [one for one in trials if one.purpose == "confirm" and one.block == block]
        host = of_block[0].host
        if host not in settings.confirming:  # its pair waits for it, others go on
            continue
        if trials[-1].start_hours - of_block[0].start_hours > confirming.PAIR_HOURS:  # it cannot be a pair any more
            continue
        for figure, config in ((base, settings.default), (mine, finalist.config)):
            key = settings.space.key(config)
            tries = sum(settings.space.key(one.config) == key for one in of_block)
            if figure is None and tries < ATTEMPTS:
                planned.append(Planned(config, host, "confirm", "again, for that run has no figure", block))
    return planned


def _beside_default(
    settings: Settings, trials: Sequence[Trial], finalist: Finalist, out: Sequence[Finalist]
) -> list[Planned]:
    """Runs of this finalist in pairs of those that are out: they have a run of the default already.

    Only while it has no pairs of its own yet, so that these are its first ones.
    """
    blocks = {block for one in out for block in one.pairs}
    if not finalist.pairs.keys() <= blocks:
        return []
    room = SHARED_PAIRS - len(finalist.pairs)
    defaults = [
        one
        for one in trials
        if one.purpose == "confirm"
        and one.status == "ok"
        and settings.space.key(one.config) == settings.default_key
        and one.block in blocks
        and one.block not in finalist.pairs
        and one.host in settings.confirming
        and one.start_hours >= trials[-1].start_hours - SHARED_HOURS
    ]
    return [
        Planned(finalist.config, one.host, "confirm", f"beside the default of pair {one.block + 1}", one.block)
        for one in defaults[max(len(defaults) - room, 0) :]
    ]


def _new_pairs(
    settings: Settings, trials: Sequence[Trial], beliefs: Beliefs, finalist: Finalist, count: int
) -> tuple[Planned, ...]:
    """So many pairs, on the hosts that have the fewest runs of pairs, then the fewest runs at all of this finalist."""
    confirm = [one for one in trials if one.purpose == "confirm"]
    first = max((one.block for one in confirm), default=-1) + 1
    runs = Counter(one.host for one in confirm)
    seen = Counter(one.host for one in beliefs.measured(beliefs.numbers[settings.space.key(finalist.config)]))
    hosts = sorted(settings.confirming, key=lambda host: (runs[host], seen[host], host))[:count]
    pairs = (confirming.plan_pair(settings, finalist.config, first + place, host) for place, host in enumerate(hosts))
    return tuple(run for pair in pairs for run in pair)
