"""Redis killed, hung, full and flushed, PostgreSQL restarted under a run: nothing is lost, and nothing fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from benchhub import embedded
from tests.faults.services_player import CASES

pytestmark = [pytest.mark.faults, pytest.mark.slow]


@pytest.fixture(scope="module")
def own_data_dir() -> Iterator[Path]:
    """Not below pytest's temporary directory: that one is closed to the account that PostgreSQL needs under root."""
    path = Path(tempfile.mkdtemp(prefix="benchhub-"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory, own_data_dir: Path) -> Iterator[Callable[[str], str]]:
    """Plays a case on services of this module's own; "" or what went wrong."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    variables = {**plain, "DJANGO_SETTINGS_MODULE": "benchhub.settings", "BENCHHUB_DATA_DIR": str(own_data_dir)}
    command = [sys.executable, "-m", "tests.faults.services_player", str(tmp_path_factory.mktemp("services"))]
    with subprocess.Popen(
        command, env=variables, cwd=settings.BASE_DIR, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as player:

        def play(case: str) -> str:
            assert player.stdin is not None
            assert player.stdout is not None
            print(case, file=player.stdin, flush=True)
            return str(json.loads(player.stdout.readline()))

        yield play
        player.stdin.close()  # type: ignore[union-attr]
        player.wait()


@pytest.mark.parametrize("case", CASES)
def test_no_run_fails_when(case: str, play: Callable[[str], str]) -> None:
    problem = play(case)
    assert not problem, problem
