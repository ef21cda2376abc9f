"""What a policy sees, what it answers, and how a budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from numpy.random import Generator

from experiments.analysis.tuning.space import Config, Space

Status = Literal["ok", "invalid", "crash"]


@dataclass(frozen=True)
class Problem:
    """`p99_limit_ms` holds for the true 99th percentile over all hosts; every run counts against `budget`."""

    space: Space
    default: Config
    higher_is_better: bool
    p99_limit_ms: float
    hosts: int
    budget: int
    source: Generator


@dataclass(frozen=True)
class Ask:
    """One run that a policy wants."""

    config: Config
    host: int


@dataclass(frozen=True)
class Result:
    """One run as it ended. `config` is what was applied: the nearest configuration that exists."""

    config: Config
    host: int
    start_hours: float
    hours: float
    status: Status
    figure: float | None
    p99_ms: float | None


@dataclass(frozen=True)
class Claim:
    """What to deploy and by how much better it is said to be; None is the default, because nothing is better."""

    config: Config | None = None
    gain: float = 0.0
    low: float | None = None
    high: float | None = None


class Policy(Protocol):
    """A way to spend the budget. `suggest` gives the next runs, none when it is done."""

    def start(self, problem: Problem) -> None: ...

    def suggest(self, history: Sequence[Result]) -> list[Ask]: ...

    def claim(self, history: Sequence[Result]) -> Claim: ...


class Measures(Protocol):
    """A lab, as far as the game needs it."""

    def problem(self, budget: int, seed: int) -> Problem: ...

    def measure(self, config: Config, host: int, time_hours: float, source: Generator) -> Result: ...


def play(lab: Measures, policy: Policy, budget: int, *, seed: int, noise: Generator) -> tuple[Claim, list[Result]]:
    """Runs of one suggestion go in order on their host, hosts in parallel; the next one starts when all are done."""
    history: list[Result] = []
    now_hours = 0.0
    policy.start(lab.problem(budget, seed))
    while len(history) < budget and (asked := policy.suggest(history)):
        clocks: dict[int, float] = {}
        for ask in asked[: budget - len(history)]:
            start_hours = clocks.get(ask.host, now_hours)
            result = lab.measure(ask.config, ask.host, start_hours, noise)
            clocks[ask.host] = start_hours + result.hours
            history.append(result)
        now_hours = max(clocks.values())
    return policy.claim(history), history
