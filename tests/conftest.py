"""What every test may ask for; the session's own PostgreSQL and Redis come from tests/settings.py."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchhub import embedded


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory with a short path; what runs in it is stopped afterwards.

    Not below pytest's own temporary directory: that one is closed to the account that PostgreSQL needs under root.
    """
    path = Path(tempfile.mkdtemp(prefix="benchhub-"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path)
