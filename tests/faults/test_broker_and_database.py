"""Redis killed, hung, full and flushed, PostgreSQL restarted under a run: nothing is lost, and nothing fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.faults.played import playing
from tests.faults.services_player import CASES

pytestmark = [pytest.mark.faults, pytest.mark.slow]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Plays a case on services of this module's own; "" or what went wrong."""
    with playing("tests.faults.services_player", tmp_path_factory.mktemp("services")) as play:
        yield play


@pytest.mark.parametrize("case", CASES)
def test_no_run_fails_when(case: str, play: Callable[[str], str]) -> None:
    problem = play(case)
    assert not problem, problem
