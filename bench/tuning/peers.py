"""What others do with the same budget: the best of random tries, Optuna's best trial, three repetitions, TUNA's policy.

None of them is worse than its makers describe it: all repeat invalid runs, leave out configurations whose measured p99
is over the limit, and spread their runs over the hosts.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from bench.tuning.game import Ask, Claim, Problem, Result
from experiments.analysis.tuning.space import Config, Key, Parameter

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)

WORST_LOG = -3.0
"""What a crash counts for, as the log of its speed against the default."""


class Peer:
    """One policy; `repetitions` runs of each configuration, each on another host."""

    repetitions = 1

    def start(self, problem: Problem) -> None:
        self.problem = problem
        self.wanted: list[Config] = []

    def suggest(self, history: Sequence[Result]) -> list[Ask]:
        host = len(history) % self.problem.hosts
        if history and history[-1].status == "invalid":
            return [Ask(self.wanted[-1], host)]
        config = self.following(history) if any(one.status == "ok" for one in history) else self.problem.default
        self.wanted.append(config)
        return [Ask(config, host)]

    def following(self, history: Sequence[Result]) -> Config:
        """The next configuration to be run; the default has a figure already."""
        raise NotImplementedError

    def claim(self, history: Sequence[Result]) -> Claim:
        """The best figure, or mean of figures, over the default's: what these tools show."""
        problem = self.problem
        runs = self.figures(history)
        base = runs.pop(problem.space.key(problem.default), [])
        full = {key: mine for key, mine in runs.items() if len(mine) >= self.needed(runs)}
        within = {key: mine for key, mine in full.items() if self.p99_ms(history, key) <= problem.p99_limit_ms}
        if not base or not within:
            return Claim()
        best = max(within, key=lambda key: self.value(within[key]))
        gain = math.exp(self.value(within[best])) / math.exp(float(np.mean(base))) - 1
        config = next(one.config for one in history if problem.space.key(one.config) == best)
        return Claim(config, gain) if gain > 0 else Claim()

    def value(self, logs: list[float]) -> float:
        return float(np.mean(logs))

    def needed(self, runs: dict[Key, list[float]]) -> int:
        """Figures that a configuration must have to be recommended."""
        return min(self.repetitions, max(map(len, runs.values()), default=1))

    def figures(self, history: Sequence[Result]) -> dict[Key, list[float]]:
        """The logs of the speeds of each configuration, larger when better."""
        sign = 1 if self.problem.higher_is_better else -1
        found: dict[Key, list[float]] = defaultdict(list)
        for one in history:
            if one.status == "ok" and one.figure is not None:
                found[self.problem.space.key(one.config)].append(sign * math.log(one.figure))
        return dict(found)

    def p99_ms(self, history: Sequence[Result], key: Key) -> float:
        values = [
            one.p99_ms or 0.0 for one in history if one.status == "ok" and self.problem.space.key(one.config) == key
        ]
        return float(np.mean(values)) if values else math.inf


class RandomBest(Peer):
    """Random configurations; the best single figure is claimed."""

    def following(self, history: Sequence[Result]) -> Config:
        return self.problem.space.at(self.problem.source.random(len(self.problem.space.parameters)))


class Asking(Peer):
    """Asks an optimiser for the next configuration when the runs of the last one are told."""

    def start(self, problem: Problem) -> None:
        super().start(problem)
        self.worst = math.inf
        self.told = 0

    def following(self, history: Sequence[Result]) -> Config:
        current = self.wanted[-1]
        runs = [one for one in history[self.told :] if one.status != "invalid"]
        crashed = any(one.status == "crash" for one in runs)
        if len(runs) < self.repetitions and not crashed:
            return current
        self.tell(current, runs)
        self.told = len(history)
        return self.ask()

    def scored(self, runs: Sequence[Result]) -> tuple[float, float]:
        """The mean log of the speed, the worst one so far after a crash, and by which part the p99 is too high."""
        sign = 1 if self.problem.higher_is_better else -1
        good = [one for one in runs if one.figure is not None and one.p99_ms is not None and one.status == "ok"]
        value = float(np.mean([sign * math.log(one.figure or 1.0) for one in good])) if good else min(self.worst, 0.0)
        over = float(np.mean([one.p99_ms or 0.0 for one in good])) / self.problem.p99_limit_ms - 1 if good else 1.0
        self.worst = min(self.worst, value)
        return value, over

    def tell(self, config: Config, runs: Sequence[Result]) -> None:
        """What came of the configuration that was asked for last."""
        raise NotImplementedError

    def ask(self) -> Config:
        """What the optimiser wants to be run next."""
        raise NotImplementedError


class OptunaBest(Asking):
    """Optuna's TPE with the limit as its constraint; its best trial is claimed."""

    def start(self, problem: Problem) -> None:
        super().start(problem)
        self.distributions = {one.name: distribution(one) for one in problem.space.parameters}
        self.sampler = optuna.samplers.TPESampler(seed=int(problem.source.integers(1 << 31)), multivariate=True)
        self.study = optuna.create_study(direction="maximize", sampler=self.sampler)

    def tell(self, config: Config, runs: Sequence[Result]) -> None:
        value, over = self.scored(runs)
        self.study.add_trial(
            create_trial(
                state=TrialState.COMPLETE,
                params=dict(config),
                distributions=self.distributions,
                value=value,
                constraints={"p99": over},
            )
        )

    def ask(self) -> Config:
        trial = self.study.ask(self.distributions)
        config = dict(trial.params)
        self.study.tell(trial, state=TrialState.FAIL)  # what was applied is told instead
        return config


class OptunaThree(OptunaBest):
    """As before, with three runs of each configuration, whose mean counts."""

    repetitions = 3


class Tuna(OptunaBest):
    """TUNA (EuroSys 2025): 1, 3, then all hosts for the better third of each, the worst figure counts, and a spread of
    more than 30 % counts as unstable. Its model of the noise between hosts is left out."""

    UNSTABLE_RATIO = 0.30

    def start(self, problem: Problem) -> None:
        super().start(problem)
        self.rungs = (1, 3, problem.hosts)
        self.current: Config | None = None
        self.goal = 1

    def suggest(self, history: Sequence[Result]) -> list[Ask]:
        asked = super().suggest(history)
        key = self.problem.space.key(asked[0].config)
        used = Counter(one.host for one in history if self.problem.space.key(one.config) == key)
        host = min(range(self.problem.hosts), key=lambda host: (used[host], (host - len(history)) % self.problem.hosts))
        return [Ask(asked[0].config, host)]

    def following(self, history: Sequence[Result]) -> Config:
        space, runs = self.problem.space, self.figures(history)
        last = history[-1]
        if last.status == "crash" or last.status == "ok":
            mine = runs.get(space.key(last.config), [])
            if last.status == "ok" and self.current is not None and len(mine) < self.goal:
                return last.config
            self.tell(last.config, [one for one in history if space.key(one.config) == space.key(last.config)])
        crashed = {space.key(one.config) for one in history if one.status == "crash"}
        for here, following in reversed(list(zip(self.rungs, self.rungs[1:], strict=False))):
            arrived = {key: mine for key, mine in runs.items() if len(mine) >= here and key not in crashed}
            promoted = sum(len(mine) > here for mine in arrived.values())
            waiting = {key: self.value(mine) for key, mine in arrived.items() if len(mine) == here}
            if waiting and promoted < len(arrived) // 3:
                best = max(waiting, key=lambda key: waiting[key])
                self.current, self.goal = (
                    next(one.config for one in history if space.key(one.config) == best),
                    following,
                )
                return self.current
        self.current, self.goal = None, 1
        return self.ask()

    def tell(self, config: Config, runs: Sequence[Result]) -> None:
        super().tell(
            config, sorted(runs, key=lambda one: one.figure or 0.0, reverse=not self.problem.higher_is_better)[:1]
        )

    def value(self, logs: list[float]) -> float:
        unstable = max(logs) - min(logs) > math.log1p(self.UNSTABLE_RATIO)
        return min(logs) + (WORST_LOG if unstable else 0.0)

    def needed(self, runs: dict[Key, list[float]]) -> int:
        most = max(map(len, runs.values()), default=1)
        return max(rung for rung in self.rungs if rung <= most)


def distribution(one: Parameter) -> BaseDistribution:
    """The parameter in Optuna's words."""
    if one.choices:
        return CategoricalDistribution(one.choices)
    if one.kind == "integer":
        return IntDistribution(round(one.low), round(one.high), log=one.log)
    return FloatDistribution(one.low, one.high, log=one.log)
