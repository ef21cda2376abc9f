"""The smallest recipe that keeps the gain: each parameter of the winner goes back alone to its default.

In every block, on one host, the winner and each variant run once. A parameter may go when the project's verdict leaves
out a loss beyond the margin or beyond half of what the gain is at least, no run without it failed, and each limit held
at least as often as with it; then all that may go do so together, and that is measured against the winner, too
(docs/tuning.md). The default itself is never the result: that the winner is better is what was confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from experiments.analysis.tuning.space import Config, Value
from experiments.analysis.tuning.trials import Planned, Settings, Trial
from experiments.analysis.verdict import Verdict, judge

BLOCKS = 8
ATTEMPTS = 2
"""Times that a run is made before its block goes without it."""
LOST_RATIO = 0.5
"""No more than this part of what the gain is at least may be lost with a parameter."""

Obstacle = Literal["", "loss", "failed", "limit", "forbidden", "default"]
"""Why it stays: a loss is not left out, a run failed, a limit held less often, it may not run alone, or without it
there is only the default."""


@dataclass(frozen=True)
class Reverted:
    """One parameter at its default in the winner: the verdict on that, beside the winner; None when it may not run."""

    parameter: str
    verdict: Verdict | None
    obstacle: Obstacle

    @property
    def may_go(self) -> bool:
        return not self.obstacle


@dataclass(frozen=True)
class Smallest:
    """The answer. `config` is the winner without what may go, or the winner when that lost too much together."""

    config: Config
    dropped: tuple[str, ...]
    each: tuple[Reverted, ...]
    together: Verdict | None
    obstacle: Obstacle = ""


def variants(settings: Settings, winner: Config) -> dict[str, dict[str, Value]]:
    """The winner with one parameter at its default, for each that differs and may run so."""
    reverted = _reverted(settings, winner)
    return {name: config for name, config in reverted.items() if not _why_not(settings, config)}


def _why_not(settings: Settings, config: Config) -> Obstacle:
    """Why this configuration is not measured at all; "" when it is."""
    if settings.space.key(config) == settings.default_key:
        return "default"
    return "forbidden" if settings.space.is_forbidden(config) else ""


def _reverted(settings: Settings, winner: Config) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for one in settings.space.parameters:
        config = settings.space.settled({**winner, one.name: settings.default[one.name]}, settings.default)
        if settings.space.key(config) != settings.space.key(winner):
            found[one.name] = config
    return found


def reduce(settings: Settings, winner: Config, low: float, trials: Sequence[Trial]) -> tuple[Planned, ...] | Smallest:
    """What to run next, or the answer. `trials` are those of purpose "revert" so far, in order.

    `low` is the lower end of the winner's claim, a ratio of speeds.
    """
    settings = replace(settings, margin_ratio=min(settings.margin_ratio, LOST_RATIO * low))
    alone = variants(settings, winner)
    if alone and (planned := _missing(settings, [winner, *alone.values()], trials, 0)):
        return planned
    each = tuple(
        Reverted(name, *_judged(settings, winner, config, trials, 0))
        if name in alone
        else Reverted(name, None, _why_not(settings, config))
        for name, config in _reverted(settings, winner).items()
    )
    gone = [one.parameter for one in each if one.may_go]
    reverted = {**winner, **{name: settings.default[name] for name in gone}}
    config = settings.space.settled(reverted, settings.default)
    if len(gone) == 1:
        return Smallest(config, tuple(gone), each, None)
    if not gone or (why_not := _why_not(settings, config)):
        return Smallest(dict(winner), (), each, None, why_not if gone else "")
    if planned := _missing(settings, [winner, config], trials, BLOCKS):
        return planned
    together, obstacle = _judged(settings, winner, config, trials, BLOCKS)
    if obstacle:
        return Smallest(dict(winner), (), each, together, obstacle)
    return Smallest(config, tuple(gone), each, together)


def runs_needed(settings: Settings, winner: Config | None) -> int:
    """The number of runs that it takes at most, without repeated ones; of whatever will win while nobody knows."""
    alone = len(settings.space.parameters) if winner is None else len(variants(settings, winner))
    return BLOCKS * (alone + 3) if alone else 0


def _missing(settings: Settings, configs: Sequence[Config], trials: Sequence[Trial], first: int) -> tuple[Planned, ...]:
    """The runs that the first unfinished blocks lack, in a random order in each, one block for each host.

    A block that was begun on a host that is away now does not count.
    """
    planned: list[Planned] = []
    for block in range(first, first + BLOCKS):
        lacking: list[Planned] = []
        begun = next((one.host for one in trials if one.block == block), None)
        host = settings.able[block % len(settings.able)] if begun is None else begun
        if host not in settings.able:
            continue
        for config in configs:
            mine = _runs(settings, config, trials, block)
            if not any(one.status == "ok" or one.failed for one in mine) and len(mine) < ATTEMPTS:
                why = "the winner" if config is configs[0] else "a parameter back at its default"
                lacking.append(Planned(config, host, "revert", why, block))
        order = np.random.default_rng([settings.seed, block, 17]).permutation(len(lacking))
        planned += [lacking[place] for place in order]
        if lacking and (block + 1 - first) % len(settings.able) == 0:
            break
    return tuple(planned)


def _runs(settings: Settings, config: Config, trials: Sequence[Trial], block: int) -> list[Trial]:
    key = settings.space.key(config)
    return [one for one in trials if one.block == block and settings.space.key(one.config) == key]


def _judged(
    settings: Settings, winner: Config, config: Config, trials: Sequence[Trial], first: int
) -> tuple[Verdict, Obstacle]:
    """The variant against the winner over its blocks, and why it may not take the winner's place.

    A block without one of the two does not count.
    """
    blocks = range(first, first + BLOCKS)
    theirs, mine = ([_runs(settings, one, trials, block) for block in blocks] for one in (winner, config))
    base, own = ([_measured(runs) for runs in side] for side in (theirs, mine))
    verdict = _verdict(settings, base, own)
    if any(one.failed for runs in mine for one in runs):
        return verdict, "failed"
    both = [(a, b) for a, b in zip(base, own, strict=True) if a is not None and b is not None]
    for place, limit in enumerate(settings.limits):
        held = [sum(pair[side].bounded[place] <= limit.at_most for pair in both) for side in (0, 1)]
        if held[1] < held[0]:
            return verdict, "limit"
    return verdict, "" if verdict.not_worse else "loss"


def _measured(runs: Sequence[Trial]) -> Trial | None:
    return next((one for one in runs if one.status == "ok"), None)


def _verdict(settings: Settings, base: Sequence[Trial | None], own: Sequence[Trial | None]) -> Verdict:
    return judge(
        [one.figure if one else None for one in base],
        [one.figure if one else None for one in own],
        higher_is_better=settings.higher_is_better,
        margin_ratio=settings.margin_ratio,
        alpha=settings.alpha,
        design="blocked",
    )
