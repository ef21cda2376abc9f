"""What a start loads: a library that takes long is loaded by who needs it, not by every command and process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"asyncssh", "fpdf", "matplotlib", "mcp", "mcp_types", "pandas", "polars", "scipy", "starlette"}
KINDS = {"agents.drivers", "agents.monitors", "agents.recordings", "agents.servers", "agents.steps"}
COMMAND = "from django.core.management import execute_from_command_line as run; run(['manage.py', 'check'])"
WEB = "import benchhub.asgi; from django.urls import get_resolver; get_resolver().url_patterns"
WORKER = "from benchhub.celery import app; app.Worker(pool='threads')"
BEAT = "from benchhub.celery import app; app.Beat().init_loader(); import benchhub.ticking"
PAGES = {"frontend.urls", "experiments.api"}
TABLES = "import django; django.setup(); import experiments.models"


def loaded_by(code: str) -> set[str]:
    """The modules that a Python process has loaded when it is through with this code."""
    told = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return set(told.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("code", [pytest.param(COMMAND, id="a short command"), pytest.param(WEB, id="web")])
def test_all_pages_and_the_api_are_there_without_the_libraries_that_load_slowly(code: str) -> None:
    loaded = loaded_by(code)
    assert loaded >= PAGES
    assert sorted(loaded & {*HEAVY, "agents.remote.ssh", "agents.runner"}) == []


def test_a_worker_has_the_tasks_and_no_pages() -> None:
    loaded = loaded_by(WORKER)
    assert {"experiments.tasks", "agents.runner"} <= loaded
    assert sorted(loaded & PAGES) == []


def test_beat_sends_tasks_by_name_and_has_neither_them_nor_pages() -> None:
    loaded = loaded_by(BEAT)
    assert "experiments.models" in loaded
    assert sorted(loaded & {*PAGES, *HEAVY, *KINDS, "experiments.tasks"}) == []


def test_the_tables_are_there_without_any_kind_of_driver_or_step() -> None:
    loaded = loaded_by(TABLES)
    assert "experiments.models" in loaded
    assert sorted(loaded & {*HEAVY, *KINDS, "agents.spec", "lxml"}) == []
