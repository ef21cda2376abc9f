"""What docs/history.md promises: alarms in histories without a change, and a step found, with a look after every run.

Each simulated history grows run by run as a real one does: the runs are put into points, the search for change points
goes on from its last windows, and what it confirms is noted. No database is needed for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bench.simulations.figures import Aim, Section, Simulated
from experiments.analysis.changepoints import DEFAULT, HISTORY, Changes, Settings, find_changes
from experiments.analysis.history_points import points_of
from experiments.analysis.sessions import judge_session
from experiments.analysis.verdict import judge

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOISE, LEVEL = 0.02, 1000.0
RUNS, NIGHTS = 100, 365
LIKENESS = 0.3
SLOW_SHARE, SLOW_RATIO = 0.1, 0.9
STEP_RATIO, STEP_AT, FOUND_WITHIN, SAME_WITHIN = 0.95, 50, 5, 3
REPETITIONS, REPEATED_NIGHTS = 5, 40
DAY_S, RUN_S = 86_400.0, 300.0


def independent(n: int, rng: Generator) -> Floats:
    return LEVEL * (1 + rng.normal(0, NOISE, n))


def alike(n: int, rng: Generator) -> Floats:
    """Each run resembles the one before it, with the same spread."""
    steps = rng.normal(0, NOISE * np.sqrt(1 - LIKENESS**2), n)
    steps[0] = rng.normal(0, NOISE)
    for place in range(1, n):
        steps[place] += LIKENESS * steps[place - 1]
    return LEVEL * (1 + steps)


def with_slow_runs(n: int, rng: Generator) -> Floats:
    """One run in ten is 10 % slower, as by a job of somebody else."""
    return independent(n, rng) * np.where(rng.random(n) < SLOW_SHARE, SLOW_RATIO, 1.0)


def looks(values: Floats, settings: Settings, at_s: Floats | None = None, since: int = 1) -> Iterator[Changes]:
    """What is found after each run from the one after `since` on; one run a night unless `at_s` says otherwise."""
    ends_s = np.asarray(np.arange(len(values)) * DAY_S if at_s is None else at_s, dtype=np.float64)
    key = np.zeros(len(values), dtype=np.int64)
    found, before = None, np.empty(0)
    for n in range(since, len(values) + 1):
        now = points_of(ends_s[:n], key[:n], values[:n]).value
        shorter = min(len(before), len(now))
        different = np.flatnonzero(before[:shorter] != now[:shorter])
        unchanged = int(different[0]) if len(different) else shorter
        found = find_changes(now, settings, known=found.windows if found else (), unchanged=unchanged)
        before = now
        yield found


@dataclass
class Watched:
    """Alarms of one history: the confirmed places as they came, and how many of them the end no longer shows."""

    confirmed: list[int] = field(default_factory=list)
    withdrawn: int = 0

    @classmethod
    def of(cls, found: Iterator[Changes]) -> Watched:
        watched, last = cls(), None
        for last in found:
            watched.confirmed += [place for place in last.indexes if not _near(place, watched.confirmed)]
        if last is not None:
            watched.withdrawn = sum(not _near(place, last.indexes) for place in watched.confirmed)
        return watched


def _near(place: int, others: Sequence[int]) -> bool:
    return any(abs(place - other) <= SAME_WITHIN for other in others)


def false_alarms(rng: Generator, trials: int) -> list[Simulated]:
    """Histories without a change in which at least one is confirmed, with a look after each run."""
    cases: tuple[tuple[str, Callable[[int, Generator], Floats], int, int, float, float | None], ...] = (
        (f"{RUNS} runs, independent", independent, RUNS, 1, 0.05, 0.126),
        (f"{RUNS} runs, autocorrelation {LIKENESS}", alike, RUNS, 1, 0.10, 0.34),
        (f"{RUNS} runs, one in ten slow", with_slow_runs, RUNS, 1, 0.10, 0.28),
        (f"{NIGHTS} nights, independent", independent, NIGHTS, 4, 0.15, 0.35),
        (f"{NIGHTS} nights, autocorrelation {LIKENESS}", alike, NIGHTS, 4, 0.40, 0.80),
    )
    found: list[Simulated] = []
    confirmed = withdrawn = histories = 0
    for what, make, n, fewer, aim, before in cases:
        watched = [Watched.of(looks(make(n, rng), HISTORY)) for _ in range(max(1, trials // fewer))]
        alarmed = float(np.mean([bool(one.confirmed) for one in watched]))
        found.append(Aim(f"{what}: alarmed", alarmed, aim, "at most", before))
        if n == RUNS:
            confirmed += sum(len(one.confirmed) for one in watched)
            withdrawn += sum(one.withdrawn for one in watched)
            histories += len(watched)
    what = f"{RUNS} runs, all three: alarms taken back ({withdrawn} of {confirmed}), per history"
    found.append(Aim(what, withdrawn / histories, 0.1, "at most"))
    return found


def steps_found(rng: Generator, trials: int) -> list[Simulated]:
    """A step of 5 % at 2 % noise after 50 runs is confirmed before its sixth run."""
    seen, early = 0, 0
    for _ in range(trials):
        values = independent(STEP_AT + FOUND_WITHIN, rng)
        values[STEP_AT:] *= STEP_RATIO
        after = looks(values, HISTORY, since=STEP_AT + 1)
        seen += any(_near(STEP_AT, found.indexes) for found in after)
        early += any(found.suspected is not None for found in looks(values[: STEP_AT + 3], HISTORY, since=STEP_AT + 1))
    return [
        Aim(f"confirmed within {FOUND_WITHIN} runs", seen / trials, 0.80, "at least", 0.90),
        Aim("suspected within 3 runs", early / trials, 0.30, "at least"),
    ]


def repeated_nights(rng: Generator, trials: int) -> list[Simulated]:
    """Nights of five repetitions that share what the night was like: half of a run's variance is its night's."""
    at_s = (np.arange(REPEATED_NIGHTS)[:, None] * DAY_S + np.arange(REPETITIONS) * RUN_S).ravel()
    alarmed: dict[str, int] = {"points": 0, "runs": 0}
    for _ in range(trials):
        values = _sessions(REPEATED_NIGHTS, REPETITIONS, 0.5, rng).ravel()
        alarmed["points"] += bool(Watched.of(looks(values, HISTORY, at_s)).confirmed)
        alarmed["runs"] += bool(Watched.of(looks(values, DEFAULT)).confirmed)
    what = f"{REPEATED_NIGHTS} nights of {REPETITIONS} repetitions, session share 0.5: alarmed"
    return [Aim(what, alarmed["points"] / trials, 0.05, "at most", round(alarmed["runs"] / trials, 3))]


def gate(rng: Generator, trials: int) -> list[Simulated]:
    """A build without a change fails the gate; against other sessions of the same branch, and against a pinned one."""
    found: list[Simulated] = []
    for share in (0.0, 0.5):
        for sessions, runs in ((20, 5), (5, 5), (20, 1)):
            rates = _gate_failures(rng, trials, share, sessions, runs)
            what = f"session share {share:g}, {sessions} sessions of {runs}"
            found.append(Aim(f"{what}, branch: worse", rates["branch"], 0.05, "at most", rates["before"]))
            found.append(Aim(f"{what}, pinned: worse", rates["pinned"], 0.05, "at most"))
    return found


def _gate_failures(rng: Generator, trials: int, share: float, sessions: int, runs: int) -> dict[str, float]:
    """`before`: the newest 20 runs as independent ones, which was how the gate compared them."""
    failed = dict.fromkeys(("branch", "pinned", "before"), 0)
    for _ in range(trials):
        earlier = _sessions(sessions, runs, share, rng).tolist()
        candidate = _sessions(1, REPETITIONS, share, rng)[0].tolist()
        ask = partial(judge_session, candidate=candidate, earlier=earlier, higher_is_better=True)
        newest = [value for session in earlier for value in session][-20:]
        failed["branch"] += ask(earlier).gate == "fail"
        failed["pinned"] += ask(earlier[-1:]).gate == "fail"
        together = judge(newest, candidate, higher_is_better=True, design="independent")
        failed["before"] += together.gate == "fail"
    return {name: round(count / trials, 4) for name, count in failed.items()}


def _sessions(count: int, runs: int, share: float, rng: Generator) -> Floats:
    """Rows of sessions; `share` of the variance of a run is its session's."""
    own = rng.normal(0, NOISE * np.sqrt(share), (count, 1))
    return np.asarray(LEVEL * np.exp(own + rng.normal(0, NOISE * np.sqrt(1 - share), (count, runs))))


SECTIONS = (
    Section("History: alarms without a change, a look after every run", false_alarms, 0.25),
    Section("History: a step of 5 % at 2 % noise", steps_found, 0.5),
    Section("History: nights of several runs", repeated_nights, 0.1),
    Section("History: the gate against other sessions", gate, 0.25),
)
