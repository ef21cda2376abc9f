"""What every test may ask for; the session's own PostgreSQL and Redis come from tests/settings.py."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchhub import embedded

# The same examples each time, on a slow machine too: a run of the tests says something about the change it is of.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory with a short path; what runs in it is stopped afterwards.

    Not below pytest's own temporary directory: that one is closed to the account that PostgreSQL needs under root.
    """
    path = Path(tempfile.mkdtemp(prefix="benchhub-"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path)
