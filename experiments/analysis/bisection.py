"""The first bad one of an ordered list, by halving, where a comparison may stay unclear. Pure.

A bisection is a function of its steps so far, so any process can carry it on: `decide` says what to compare
next. The course: docs/bisect.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

StepResult = Literal["good", "bad", "unclear"]


@dataclass(frozen=True)
class Step:
    """One comparison with the good one that is over; `index` counts from 0, which is the good one itself."""

    index: int
    result: StepResult


@dataclass(frozen=True)
class Compare:
    """Compare the good one with this one next. `high` is None until something is known to be bad."""

    index: int
    low: int
    high: int | None


@dataclass(frozen=True)
class FirstBad:
    """`index` is worse than the good one, the one before it is not."""

    index: int


@dataclass(frozen=True)
class Between:
    """The first bad one is after `low` and at most `high`; what lies between them stayed unclear."""

    low: int
    high: int


@dataclass(frozen=True)
class NothingToFind:
    """The last one was not found to be worse than the good one."""

    result: StepResult


Decision = Compare | FirstBad | Between | NothingToFind


_RESULTS: dict[str, StepResult] = {
    "worse": "bad",
    "worse_size_uncertain": "bad",
    "better": "good",
    "better_size_uncertain": "good",
    "no_practical_difference": "good",
}


def result_of(outcome: str, *, is_not_worse: bool) -> StepResult:
    """What a verdict against the good one says of a candidate. An inconclusive one is good when it is not worse."""
    if outcome == "inconclusive" and is_not_worse:
        return "good"
    return _RESULTS.get(outcome, "unclear")


def decide(count: int, steps: Sequence[Step]) -> Decision:
    """What follows after these steps, of `count` candidates. The last one comes first: it must be bad at all."""
    results = {step.index: step.result for step in steps}
    last = count - 1
    if last not in results:
        return Compare(last, 0, None)
    if results[last] != "bad":
        return NothingToFind(results[last])
    low = max((index for index, result in results.items() if result == "good"), default=0)
    high = min(index for index, result in results.items() if result == "bad")
    if high - low == 1:
        return FirstBad(high)
    untried = [index for index in range(low + 1, high) if index not in results]
    if not untried:
        return Between(low, high)
    middle = (low + high) / 2
    return Compare(min(untried, key=lambda index: (abs(index - middle), index)), low, high)


def steps_left(count: int, steps: Sequence[Step]) -> int:
    """How many comparisons are still needed at most, if none of them stays unclear."""
    step = decide(count, steps)
    if not isinstance(step, Compare):
        return 0
    if step.high is None:
        return 1 + math.ceil(math.log2(count - 1)) if count > 2 else 1
    return math.ceil(math.log2(step.high - step.low))
