"""Bisection: the first bad one, whatever stays unclear on the way."""

from __future__ import annotations

import math

import pytest

from experiments.analysis.bisection import (
    Between,
    Compare,
    FirstBad,
    NothingToFind,
    Step,
    StepResult,
    decide,
    steps_left,
)
from tests.properties import given, st


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, frozenset[int]]:
    """How many there are, which is the first bad one, and which can never be judged."""
    count = draw(st.integers(2, 60))
    unclear = draw(st.frozensets(st.integers(1, max(1, count - 2)), max_size=count))
    return count, draw(st.integers(1, count - 1)), unclear - {count - 1}


def play(count: int, first_bad: int, unclear: frozenset[int]) -> tuple[object, list[Step]]:
    steps: list[Step] = []
    while isinstance(decision := decide(count, steps), Compare):
        assert decision.index not in {step.index for step in steps}
        result: StepResult = "bad" if decision.index >= first_bad else "good"
        steps.append(Step(decision.index, "unclear" if decision.index in unclear else result))
    return decision, steps


@given(histories())
def test_the_answer_always_holds_the_first_bad_one(history: tuple[int, int, frozenset[int]]) -> None:
    count, first_bad, unclear = history
    decision, steps = play(count, first_bad, unclear)
    if isinstance(decision, FirstBad):
        assert decision.index == first_bad
    else:
        assert isinstance(decision, Between)
        assert decision.low < first_bad <= decision.high
        assert set(range(decision.low + 1, decision.high)) <= unclear
    if not unclear:
        assert len(steps) <= 1 + math.ceil(math.log2(count))


@pytest.mark.parametrize(
    ("count", "steps", "following"),
    [
        (2, [], Compare(1, 0, None)),
        (2, [Step(1, "bad")], FirstBad(1)),
        (9, [], Compare(8, 0, None)),
        (9, [Step(8, "good")], NothingToFind("good")),
        (9, [Step(8, "unclear")], NothingToFind("unclear")),
        (9, [Step(8, "bad")], Compare(4, 0, 8)),
        (9, [Step(8, "bad"), Step(4, "bad")], Compare(2, 0, 4)),
        (9, [Step(8, "bad"), Step(4, "unclear")], Compare(3, 0, 8)),
        (4, [Step(3, "bad"), Step(1, "good"), Step(2, "unclear")], Between(1, 3)),
    ],
)
def test_what_follows(count: int, steps: list[Step], following: object) -> None:
    assert decide(count, steps) == following


@given(st.integers(2, 100), st.data())
def test_the_steps_that_are_left_are_never_fewer_than_said(count: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, count - 1))
    steps: list[Step] = []
    left = steps_left(count, steps)
    while isinstance(decision := decide(count, steps), Compare):
        steps.append(Step(decision.index, "bad" if decision.index >= first_bad else "good"))
        assert steps_left(count, steps) < left
        left = steps_left(count, steps)
    assert left == 0
