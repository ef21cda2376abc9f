"""Clocks that are set by an hour and a day under runs, or differ by up to a minute: no promise depends on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests import needs
from tests.clocks import COMPILER
from tests.faults.clock_player import CASES
from tests.faults.played import playing

pytestmark = [
    pytest.mark.faults,
    pytest.mark.slow,
    needs.program(COMPILER),
]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Plays a case on services of this module's own; "" or what went wrong."""
    with playing("tests.faults.clock_player", tmp_path_factory.mktemp("clocks")) as play:
        yield play


@pytest.mark.parametrize("case", CASES)
def test_no_promise_is_broken_when(case: str, play: Callable[[str], str]) -> None:
    problem = play(case)
    assert not problem, problem
