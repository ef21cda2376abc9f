"""What every test may ask for; the session's own PostgreSQL and Redis come from tests/settings.py."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from benchhub import embedded
from tests import needs

TOGETHER = (
    *(f"tests/browser/test_{name}.py" for name in ("accessibility", "at_work", "main_job", "pipeline_and_link")),
    *(f"tests/lab/test_{name}.py" for name in ("lab", "lab_command", "proof", "proxy", "recorders")),
    "tests/bench/test_seeding.py",
    "tests/experiments/telling/test_report.py",
    "tests/frontend/test_isolation.py",
    "tests/test_wheel.py",
    "tests/upgrade/test_upgrade.py",
)
"""Modules whose tests share what takes long to make. Each stays in one process; those of browsers and labs in the same
one, because Chromium gives up its requests when a lab changes the networks of the machine.
"""

OF_THEIR_OWN = {"containers", "faults", "generators", "hosts"}
"""Marks of tests that only run when asked for. Each has a directory of its name, so that asking collects no other."""


class InGroups(LoadScopeScheduling):  # type: ignore[misc]
    """Begins with the largest of these groups and hands out all other tests one by one."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        if path not in TOGETHER:
            return nodeid
        return "network" if path.startswith(("tests/browser/", "tests/lab/")) else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> InGroups | None:
    """`--dist loadgroup` is ours: with this pytest, pytest-xdist 3.8 does not see its own groups."""
    return InGroups(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Long tests first; pytest-django has an order of its own, which stays."""
    for item in items:
        for name in OF_THEIR_OWN.intersection(mark.name for mark in item.iter_markers()):
            if not item.nodeid.startswith(f"tests/{name}/"):
                raise pytest.UsageError(f"{item.nodeid} is marked {name}: move it to tests/{name}")
    yield
    items.sort(key=lambda item: not _is_long(item))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests were skipped for which reason; a reason says what would make them run."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    if reasons:
        terminalreporter.section("skipped")
        terminalreporter.line(f"{len(reasons)} skipped, for these reasons:")
        for line in needs.summary(reasons):
            terminalreporter.line(line)


def _is_long(item: pytest.Item) -> bool:
    """A long test begins early, or it is alone at the end; those with a database stay where pytest-django has them."""
    wants_database = item.get_closest_marker("django_db") or "transactional_db" in getattr(item, "fixturenames", ())
    return item.get_closest_marker("slow") is not None and not wants_database


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Test databases are copies of one that is kept: to migrate takes seconds, and each worker would do it."""
    from django.db import connection

    from tests import template_database

    if template_database.prepare(Path(os.environ["BENCHHUB_TEST_DATA_DIR"])):
        connection.settings_dict["TEST"]["TEMPLATE"] = template_database.NAME


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """An empty data directory with a short path; what runs in it is stopped afterwards.

    Not below pytest's own temporary directory: that one is closed to the account that PostgreSQL needs under root.
    """
    path = Path(tempfile.mkdtemp(prefix="benchhub-"))
    yield path
    embedded.stop(path)
    shutil.rmtree(path)
