"""What every test shares: the session's own PostgreSQL and Redis, and the temporary data directories."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchhub import embedded


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops the session's services and removes their files, also after Ctrl-C; xdist workers leave that to the first."""
    if os.environ.get("BENCHHUB_TEST_OWNER_PID") != str(os.getpid()):
        return
    data_dir = Path(os.environ["BENCHHUB_TEST_DATA_DIR"])
    embedded.stop(data_dir)
    shutil.rmtree(data_dir, ignore_errors=True)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory with a short path; what runs in it is stopped afterwards.

    Not below pytest's own temporary directory: that one is closed to the account that PostgreSQL needs under root.
    """
    path = Path(tempfile.mkdtemp(prefix="benchhub-"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path)
