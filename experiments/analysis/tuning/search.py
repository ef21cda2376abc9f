"""The search for the best configuration: what to run next, or what came of it. Pure.

A search is a function of its settings and of the trials so far, so any process can carry it on at any time. The
course: docs/tuning.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from experiments.analysis.tuning import confirming, pairing
from experiments.analysis.tuning.beliefs import Beliefs
from experiments.analysis.tuning.proposing import expected_excess, promising, spread
from experiments.analysis.tuning.racing import contenders, freest_host
from experiments.analysis.tuning.space import Config, Key, Value
from experiments.analysis.tuning.trials import ATTEMPTS, Planned, Purpose, Settings, Trial, ended_invalid, searched

FEWEST_ROUNDS = 12
CONTROL_EVERY = 6
FEWEST_SPREAD, SPREAD_RATIO, RACED_RATIO = 8, 0.25, 0.15
"""Parts of the search's runs: the first ones are spread over the space, the last ones belong to the race."""
EARLIEST_STOP_RATIO, LEAST_EXCESS_RATIO = 0.6, 0.5
"""From this part of the budget on a search ends when less is to be gained beyond the margin than this part of it."""
CONFIRMED_CHANCE, WORTH_CHANCE = 0.4, 0.6
"""A finalist must have the first chance to gain the margin; with the second one a search does not end without pairs."""


@dataclass(frozen=True)
class Round:
    """Runs to be made next: those of one host in this order, the hosts at once."""

    planned: tuple[Planned, ...]


@dataclass(frozen=True)
class Better:
    """A configuration is confirmed to be better than the default."""

    claim: confirming.Claim


@dataclass(frozen=True)
class NothingBetter:
    """No configuration was confirmed to be better. `stopped`: the runs could not tell, for something is broken."""

    sentence: str
    stopped: bool = False


@dataclass(frozen=True)
class BudgetTooSmall:
    """A configuration looks better, but the runs did not suffice to tell; `more_runs` is what it takes, about."""

    sentence: str
    more_runs: int


Decision = Round | Better | NothingBetter | BudgetTooSmall


def decide(settings: Settings, trials: Sequence[Trial]) -> Decision:
    """What follows after these trials, in the order in which they were planned.

    When the finalists are not confirmed and more runs are left than it takes to confirm another one, as after much more
    budget, the search goes on.
    """
    if ended_invalid(trials[settings.forgiven :]):
        return NothingBetter("The newest runs were all invalid: see why, then start again.", stopped=True)
    confirmed = _confirm(settings, trials) if trials and trials[-1].purpose == "confirm" else None
    if isinstance(confirmed, Round | Better):
        return confirmed
    mine = searched(trials)
    if len(mine) < FEWEST_SPREAD and (first := _first(settings, mine)):
        return Round(first)
    if missing := _default_first(settings, mine):
        return missing
    beliefs = Beliefs(settings, trials)
    left, margin = searching(settings) - len(trials), math.log1p(settings.margin_ratio)
    if len(trials) >= EARLIEST_STOP_RATIO * settings.budget_runs:
        excess = expected_excess(beliefs, _source(settings, mine))
        if excess >= margin:
            left = settings.budget_runs - confirming.needed(settings, beliefs) - len(trials)
        if left > 0 and excess < LEAST_EXCESS_RATIO * margin:
            # What is confirmed, or cannot be, is the answer.
            if len(mine) < len(trials) or _likely(beliefs, WORTH_CHANCE):
                return confirmed or _confirm(settings, trials)
            return NothingBetter(
                f"No setting is likely to beat the default by more than {settings.margin_ratio:.0%}: the most "
                f"promising one is expected to gain {math.expm1(excess):.1%} beyond that." + _faster_ones(beliefs)
            )
    if left > 0 and (planned := _next(settings, mine, beliefs, left)):
        return Round(planned)
    return confirmed or _confirm(settings, trials)


def _default_first(settings: Settings, trials: Sequence[Trial]) -> Decision | None:
    """The default once more while it has no figure; without one there is nothing to compare with."""
    controls = [one for one in trials if one.purpose == "control"]
    if any(one.status == "ok" for one in controls):
        return None
    failed = sum(one.failed for one in trials[settings.forgiven :] if one.purpose == "control")
    if failed >= ATTEMPTS or len(trials) >= settings.budget_runs:
        return NothingBetter("The default itself does not run: mend that, then start again.", stopped=True)
    host = settings.able[len(controls) % len(settings.able)]
    return Round((Planned(settings.default, host, "control", "the default, which has no figure yet"),))


def _first(settings: Settings, trials: Sequence[Trial]) -> tuple[Planned, ...]:
    count = max(FEWEST_SPREAD - len(trials), 1)
    controls = 0 if any(one.purpose == "control" and one.status == "ok" for one in trials) else 1
    hosts = settings.able
    planned = [Planned(settings.default, hosts[0], "control", "the default, to compare with")] * controls
    for place, config in enumerate(_not_tried(settings, trials, count - controls), len(trials) + controls):
        planned.append(Planned(config, hosts[place % len(hosts)], "explore", "spread over the space"))
    return tuple(planned)


def round_size(settings: Settings) -> int:
    """Runs of one round: as many as there are hosts, but at least twelve rounds."""
    return max(1, min(len(settings.able), math.ceil(settings.budget_runs / FEWEST_ROUNDS)))


class _Slots:
    """The hosts of one round that are still free, and what is planned on the others."""

    def __init__(self, settings: Settings, trials: Sequence[Trial], size: int) -> None:
        used = Counter(one.host for one in trials)
        self.free = sorted(settings.able, key=lambda host: (used[host], host))[:size]
        self.planned: list[Planned] = []

    def add(self, config: Config, host: int, purpose: Purpose, why: str) -> None:
        self.free.remove(host)
        self.planned.append(Planned(config, host, purpose, why))


def _next(settings: Settings, trials: Sequence[Trial], beliefs: Beliefs, left: int) -> tuple[Planned, ...]:
    """One round of the search, of at most `left` runs."""
    slots = _Slots(settings, trials, min(round_size(settings), left))
    again = owed(settings, trials)
    if len(settings.able) == 1 and again[-1:] == list(trials[-1:]):
        again.pop()  # something else first: what is to blame, the configuration or its host, shows between the two
    for one in again[: len(slots.free)]:
        host = one.host if one.host in slots.free else slots.free[0]
        slots.add(one.config, host, one.purpose, "again, for that run was invalid")
    controls = Counter(one.host for one in trials if one.purpose == "control" and one.status == "ok")
    if slots.free and sum(controls.values()) * CONTROL_EVERY <= len(trials):
        host = min(slots.free, key=lambda host: controls[host])
        slots.add(settings.default, host, "control", "the default, as control")
    if not slots.free:
        return tuple(slots.planned)
    explored = sum(one.purpose == "explore" for one in trials)
    of_spread = max(FEWEST_SPREAD, int(SPREAD_RATIO * searching(settings)))
    if explored < of_spread and _go_on_over_space(settings, trials, slots):
        return tuple(slots.planned)
    if left <= RACED_RATIO * searching(settings):
        _race(slots, beliefs)
    for proposal in promising(beliefs, len(slots.free), _source(settings, trials)):
        host = freest_host(beliefs, proposal.config, slots.free)
        if proposal.is_new:
            slots.add(proposal.config, host, "explore", "the most is to be gained here")
        else:
            slots.add(proposal.config, host, "repeat", "perhaps the best: on another host")
    if not slots.planned:  # nothing more is expected of any run, so the race is all that is left
        _race(slots, beliefs)
    early = len(trials) < EARLIEST_STOP_RATIO * settings.budget_runs
    if not slots.planned and early and not _likely(beliefs):
        # Where all that ran crashed or broke a limit, the model sees no way out, and has seen little.
        _go_on_over_space(settings, trials, slots)
    return tuple(slots.planned)


def _go_on_over_space(settings: Settings, trials: Sequence[Trial], slots: _Slots) -> bool:
    """Configurations of the spread that did not run yet; whether there were any."""
    new = _not_tried(settings, trials, len(slots.free))
    for config in new:
        slots.add(config, slots.free[0], "explore", "spread over the space")
    return bool(new)


def _not_tried(settings: Settings, trials: Sequence[Trial], count: int) -> list[dict[str, Value]]:
    """The next so many of the spread, fewer when there are no more."""
    tried = {settings.space.key(config) for one in trials for config in (one.config, one.asked or one.config)}
    among = spread(settings.space, settings.default, len(tried) + count, settings.seed)
    return [config for config in among if settings.space.key(config) not in tried][:count]


def _race(slots: _Slots, beliefs: Beliefs) -> None:
    for contender in contenders(beliefs, len(slots.free)):
        host = freest_host(beliefs, contender, slots.free)
        slots.add(contender, host, "repeat", "among the best so far: on another host")


def searching(settings: Settings) -> int:
    """Runs that the search has before the confirmation, at least: more when that one takes less than is reserved."""
    return settings.budget_runs - confirming.reserved(settings)


def more_to_search(settings: Settings, trials: int) -> int:
    """The fewest runs by which the budget has to grow so that a search with so many trials searches on for a while."""
    more = 0
    while searching(replace(settings, budget_runs=settings.budget_runs + more)) - trials < FEWEST_SPREAD:
        more += 1
    return more


def _source(settings: Settings, trials: Sequence[Trial]) -> np.random.Generator:
    """The same chance for whoever goes on from here."""
    return np.random.default_rng([settings.seed, len(trials), 5])


def owed(settings: Settings, trials: Sequence[Trial]) -> list[Trial]:
    """Invalid runs that have not been made up for yet."""
    done: Counter[object] = Counter()
    tried: Counter[object] = Counter()
    last: dict[object, Trial] = {}
    for one in trials:
        key = settings.space.key(one.config), one.purpose, one.block
        tried[key] += 1
        done[key] += one.status != "invalid"
        if one.status == "invalid":
            last[key] = one
        else:
            last.pop(key, None)
    return [
        one
        for key, one in last.items()
        if tried[key] - done[key] < ATTEMPTS and not settings.space.is_forbidden(one.config)
    ]


def _confirm(settings: Settings, trials: Sequence[Trial]) -> Decision:
    beliefs = Beliefs(settings, trials)
    out: list[confirming.Finalist] = []
    more_pairs: list[int] = []
    for tried, config in enumerate(_to_be_confirmed(settings, trials, beliefs), 1):
        if settings.space.is_forbidden(config):  # a region that was left out after its first pair
            continue
        finalist = confirming.standing(settings, trials, config)
        if pairing.is_out(settings, trials, finalist):
            out.append(finalist)
            continue
        if step := pairing.next_runs(settings, trials, beliefs, finalist, tried, out):
            return Round(step)
        verdict = confirming.verdict_on(settings, finalist, tried)
        if claim := confirming.claim_of(settings, finalist, verdict, tried):
            return Better(claim)
        if verdict.outcome == "invalid":
            more_pairs.append(confirming.pairs_wanted(settings, trials, finalist, tried))
        elif telling := confirming.pairs_that_tell(settings, finalist, tried):
            more_pairs.append(max(telling - len(finalist.logs), 1))
    if more_pairs:
        more_runs = 2 * min(more_pairs)  # one that is confirmed is an answer
        return BudgetTooSmall(
            f"A configuration looks better, but the budget did not suffice to tell: about {more_runs:,} more runs "
            "would do, if it gains what it seems to.",
            more_runs,
        )
    return NothingBetter("No configuration was confirmed to be better than the default." + _faster_ones(beliefs))


def _to_be_confirmed(settings: Settings, trials: Sequence[Trial], beliefs: Beliefs) -> list[Config]:
    """The finalists: those that have pairs, in the order of their first one, then others that have a chance.

    So each keeps its number, by which its level is divided, when the search went on after it; and those that are out
    leave room for as many others as at first.
    """
    begun = _finalists_in(settings, trials)
    newest = next((place for place in range(len(trials), 0, -1) if trials[place - 1].purpose != "confirm"), 0)
    room = confirming.FINALISTS - (len(begun) - len(_finalists_in(settings, trials[:newest])))
    others = (one for one in _likely(beliefs) if settings.space.key(one) not in begun)
    return [*begun.values(), *islice(others, room)]


def _finalists_in(settings: Settings, trials: Sequence[Trial]) -> dict[Key, Config]:
    found = {settings.space.key(one.config): one.config for one in trials if one.purpose == "confirm"}
    found.pop(settings.default_key, None)
    return found


def _likely(beliefs: Beliefs, chance: float = CONFIRMED_CHANCE) -> list[Config]:
    """What may be confirmed and has such a chance to gain the margin, in the order in which it would be."""
    return [one for one in confirming.finalists(beliefs) if confirming.chance_of_margin(beliefs, one) >= chance]


def _faster_ones(beliefs: Beliefs) -> str:
    """Who sees fast runs asks why none of them is the answer."""
    match confirming.beyond_limits(beliefs):
        case 0:
            return ""
        case 1:
            return " One that ran looks better, but probably breaks a limit."
        case count:
            return f" {count} that ran look better, but probably break a limit."
