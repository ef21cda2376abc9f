"""A tuning search goes on with the trial that would have followed, or stops, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.played import playing
from tests.faults.tuning_player import CASES

pytestmark = [pytest.mark.faults, pytest.mark.slow]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Plays a case on services of this module's own; "" or what went wrong."""
    with playing("tests.faults.tuning_player", tmp_path_factory.mktemp("tunings")) as play:
        yield play


@pytest.mark.parametrize("case", CASES)
def test_a_tuning_search_keeps_its_course_or_stops_when(case: str, play: Callable[[str], str]) -> None:
    problem = play(case)
    assert not problem, problem
